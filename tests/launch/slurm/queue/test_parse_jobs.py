import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.launch.queue.base import ENDED, RUNNING, WAITING, JobView
from scalestudy.launch.slurm import (
    parse_array_limit,
    parse_configuration,
    parse_sacct,
    parse_scontrol,
    parse_squeue,
    parse_submitted,
)

# As Slurm 22.05 printed them.
SQUEUE = """\
3_1|CANCELLED|node1|2026-11-21T13:46:27|None
5|CANCELLED||2026-11-21T13:46:28|DependencyNeverSatisfied
1|FAILED|node1|2026-11-21T13:46:27|NonZeroExitCode
3_3|PENDING||N/A|JobArrayTaskLimit
8|PENDING||N/A|ReqNodeNotAvail, UnavailableNodes:node[1-2]
3_2|RUNNING|node[1-2,4]|2026-11-21T13:46:33|None
"""
SACCT = """\
1|FAILED|3:0|node1|2026-11-21T13:46:27
4|PENDING|0:0|None assigned|Unknown
6|CANCELLED by 1000|0:0|None assigned|None
3_1|CANCELLED by 0|0:15|node1|2026-11-21T13:46:27
3_[2-5%2]|PENDING|0:0|None assigned|Unknown
7|OUT_OF_ME+|0:125|node2|2026-11-21T13:46:27
"""
SCONTROL = (
    "JobId=3 ArrayJobId=3 ArrayTaskId=3-5%2 JobName=s.sh JobState=PENDING Reason=JobArrayTaskLimit "
    "Dependency=(null) Requeue=1 ExitCode=0:0 StartTime=Unknown NodeList= NumNodes=1\n"
    "JobId=9 ArrayJobId=3 ArrayTaskId=1 JobName=a b=c JobState=CANCELLED Reason=None ExitCode=0:15 "
    "StartTime=2026-11-21T13:46:27 ReqNodeList=(null) NodeList=node1 BatchHost=node1 Command=/a b/s.sh\n"
    "JobId=11 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0 NodeList=node[1-2] Power= \n"
)


def test_squeue_tells_waiting_running_and_ended_jobs_apart() -> None:
    views = parse_squeue(SQUEUE)
    assert list(views) == ["3_1", "5", "1", "3_3", "8", "3_2"]
    assert views["3_2"] == JobView(
        job="3_2", state="RUNNING", nodes="node[1-2,4]", start="2026-11-21T13:46:33"
    )
    assert views["3_2"].live and not views["3_2"].waiting
    assert views["3_3"].waiting and views["3_3"].reason == "JobArrayTaskLimit" and not views["3_3"].start
    assert views["8"].reason == "ReqNodeNotAvail, UnavailableNodes:node[1-2]"
    assert views["1"].ended and not views["1"].live


def test_sacct_tells_codes_signals_and_who_cancelled() -> None:
    views = parse_sacct(SACCT)
    assert set(views) == {"1", "4", "6", "3_1", "7"}
    assert (views["1"].exit_code, views["1"].signal, views["1"].by) == (3, None, "")
    assert (views["6"].state, views["6"].by, views["6"].nodes) == ("CANCELLED", "1000", "")
    assert (views["3_1"].exit_code, views["3_1"].signal) == (0, 15)


def test_of_a_job_that_accounting_names_twice_the_last_counts() -> None:
    assert parse_sacct("1|NODE_FAIL|0:0|a|x\n1|COMPLETED|0:0|b|y")["1"].nodes == "b"


def test_scontrol_tells_tasks_of_an_array_by_their_own_ids() -> None:
    views = parse_scontrol(SCONTROL)
    assert set(views) == {"3_1", "11"}
    assert views["3_1"].nodes == "node1" and views["3_1"].signal == 15
    assert views["11"].exit_code == 3 and views["11"].nodes == "node[1-2]"


def test_what_is_no_job_is_passed_over() -> None:
    noise = "squeue: warning\n\n|||\nslurm|x|y|z|w\n12\n"
    assert parse_squeue(noise) == parse_sacct(noise) == parse_scontrol(noise) == {}


def test_the_id_is_found_whatever_a_site_prints_around_it() -> None:
    assert parse_submitted("123\n") == "123"
    assert parse_submitted("Welcome!\n123;cluster\n") == "123"
    assert parse_submitted("Submitted batch job 123\n") is None
    assert parse_submitted("") is None


def test_no_state_is_both_alive_and_over() -> None:
    assert not WAITING & RUNNING and not (WAITING | RUNNING) & ENDED


WORD = st.text(string.ascii_letters + string.digits + "[],-_() :", max_size=20)


@given(st.text())
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    for parse in (parse_squeue, parse_sacct, parse_scontrol):
        assert all(job == view.job for job, view in parse(text).items())
    assert parse_submitted(text) is None or parse_submitted(text).isdigit()  # type: ignore[union-attr]


@given(
    st.dictionaries(
        st.from_regex(r"\A[1-9][0-9]{0,6}(_[0-9]{1,3})?\Z"),
        st.tuples(st.sampled_from(sorted(WAITING | RUNNING | ENDED)), WORD, WORD),
    )
)
def test_every_job_of_squeue_comes_back(jobs) -> None:
    text = "".join(f"{job}|{state}|{nodes}|N/A|{reason}\n" for job, (state, nodes, reason) in jobs.items())
    views = parse_squeue(text)
    assert {job: view.state for job, view in views.items()} == {job: each[0] for job, each in jobs.items()}


CONFIGURATION = """\
Configuration data as of 2026-01-01T00:00:00
ClusterName             = test
MaxArraySize            = {size}
SchedulerParameters     = bf_interval=2{more}
"""


@pytest.mark.parametrize(
    ("size", "more", "limit"),
    [(1001, "", 1001), (10001, ",max_array_tasks=50,x=1", 50), (30, ",max_array_tasks=50", 30), (0, "", 1)],
)
def test_the_largest_array_is_the_one_that_slurm_says(size, more, limit):
    found = parse_configuration(CONFIGURATION.format(size=size, more=more))
    assert found["ClusterName"] == "test"
    assert parse_array_limit(found) == limit


def test_a_slurm_that_does_not_say_how_large_an_array_may_be_is_taken_for_a_usual_one():
    assert parse_array_limit({}) == 1000
