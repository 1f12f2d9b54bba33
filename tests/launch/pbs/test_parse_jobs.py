"""Answers of qstat as the Reference Guide of PBS Professional describes them: JSON, states, statuses."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.launch.pbs import in_words, parse_qstat, parse_submitted, task, whole

ANSWER = """
{
    "timestamp":1763733600,
    "pbs_version":"2022.1.1",
    "pbs_server":"pbs01",
    "Jobs":{
        "11.pbs01":{
            "Job_Name":"s-native-w1-s0",
            "Job_Owner":"me@login1",
            "job_state":"Q",
            "queue":"prod",
            "server":"pbs01",
            "Resource_List":{"ncpus":4, "nodect":1, "place":"scatter", "walltime":"01:00:00"},
            "substate":10,
            "comment":"Not Running: Insufficient amount of resource: ngpus ",
            "estimated":{"exec_vnode":"(x1:ncpus=4)", "start_time":"Wed Oct 12 14:48:45 2022"}
        },
        "12.pbs01":{
            "job_state":"R",
            "exec_host":"x1/0*4+x2/0*4",
            "exec_vnode":"(x1:ncpus=4)+(x2:ncpus=4)",
            "substate":42,
            "stime":"Tue Oct 11 08:13:45 2022",
            "comment":"Job run at Tue Oct 11 at 08:13 on (x1:ncpus=4)+(x2:ncpus=4)"
        },
        "13.pbs01":{"job_state":"H", "substate":22, "depend":"afterok:12.pbs01@pbs01", "Hold_Types":"s"},
        "14[].pbs01":{
            "job_state":"B", "array":"True", "array_state_count":"Queued:1 Running:1 Exiting:0 Expired:1 ",
            "array_indices_submitted":"0-2", "array_indices_remaining":"1-2"
        },
        "14[0].pbs01":{"job_state":"X", "substate":92, "Exit_status":0, "exec_host":"x3/1"},
        "14[1].pbs01":{"job_state":"R", "exec_host":"x4/0*4", "stime":"Tue Oct 11 08:13:45 2022"},
        "14[2].pbs01":{"job_state":"Q", "comment":"Not Running: Max subjobs running"},
        "15.pbs01":{"job_state":"E", "substate":51, "exec_host":"x1/0"},
        "16.pbs01":{"job_state":"S", "substate":45, "exec_host":"x1/0"}
    }
}
"""


def ended(**fields):
    text = json.dumps({"Jobs": {"1.s": {"job_state": "F", "exec_host": "x1/0*4"} | fields}})
    return parse_qstat(text)["1.s"]


def test_jobs_that_are_not_over_are_told_in_the_common_words():
    found = parse_qstat(ANSWER)
    assert {job: view.state for job, view in found.items()} == {
        "11.pbs01": "PENDING", "12.pbs01": "RUNNING", "13.pbs01": "PENDING", "14[].pbs01": "RUNNING",
        "14[0].pbs01": "COMPLETED", "14[1].pbs01": "RUNNING", "14[2].pbs01": "PENDING",
        "15.pbs01": "COMPLETING", "16.pbs01": "SUSPENDED",
    }  # fmt: skip
    assert found["12.pbs01"].nodes == "x1,x2"
    assert found["12.pbs01"].start == "2022-10-11T08:13:45"
    assert found["11.pbs01"].start == "2022-10-12T14:48:45"
    assert all(view.live for job, view in found.items() if job != "14[0].pbs01")


def test_what_a_job_waits_for_is_said_in_words():
    found = parse_qstat(ANSWER)
    assert in_words(found["11.pbs01"].reason).strip() == "insufficient amount of resource: ngpus"
    assert in_words(found["13.pbs01"].reason) == "waits for another job"
    assert in_words(found["14[2].pbs01"].reason) == "max subjobs running"
    assert in_words("") == "not yet considered"


@pytest.mark.parametrize(
    ("fields", "state", "code", "signal"),
    [
        ({"Exit_status": 0, "substate": 92}, "COMPLETED", 0, None),
        ({"Exit_status": 3, "substate": 93}, "FAILED", 3, None),
        ({"Exit_status": 75, "substate": 93}, "FAILED", 75, None),
        ({"Exit_status": -29, "substate": 93}, "TIMEOUT", None, None),
        ({"Exit_status": -27, "substate": 93}, "OUT_OF_MEMORY", None, None),
        ({"Exit_status": -20, "substate": 93}, "NODE_FAIL", None, None),
        ({"Exit_status": 271, "substate": 91}, "CANCELLED", None, None),
        ({"substate": 91}, "CANCELLED", None, None),
        ({"Exit_status": 265, "substate": 93}, "FAILED", None, 9),
        ({"Exit_status": -1, "substate": 93}, "FAILED", None, None),
        (
            {
                "Exit_status": 271, "substate": 93, "Resource_List": {"walltime": "00:10:00"},
                "resources_used": {"walltime": "00:10:04"},
            },
            "TIMEOUT", None, None,
        ),
        (
            {
                "Exit_status": 271, "substate": 93, "Resource_List": {"walltime": "00:10:00"},
                "resources_used": {"walltime": "00:01:00"},
            },
            "FAILED", None, 15,
        ),
    ],
)  # fmt: skip
def test_how_a_job_ended_is_told_by_its_status_and_substate(fields, state, code, signal):
    view = ended(**fields)
    assert (view.state, view.exit_code, view.signal) == (state, code, signal)
    assert view.ended


def test_nothing_is_no_job_and_anything_else_is_refused():
    assert parse_qstat("") == {}
    for text in ("[]", '{"Jobs": 3}', "qstat: no"):
        with pytest.raises(ValueError, match=r".*"):
            parse_qstat(text)


@pytest.mark.parametrize(
    ("printed", "job"),
    [
        ("1234.pbs01\n", "1234.pbs01"),
        ("Welcome\n1234[].pbs-01.hsn.cluster.net\n", "1234[].pbs-01.hsn.cluster.net"),
        ("1234\n", "1234"),
        ("qsub: waiting", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_id_of_a_job_is_found_whatever_is_printed_around_it(printed, job):
    assert parse_submitted(printed) == job


@given(
    number=st.integers(1, 10**9), index=st.integers(0, 9999), server=st.sampled_from(["", ".pbs01", ".a.b-c"])
)
def test_a_task_names_its_array_and_back(number, index, server):
    array = f"{number}[]{server}"
    assert task(array, index) == f"{number}[{index}]{server}"
    assert whole(task(array, index)) == array
    assert whole(f"{number}{server}") == f"{number}{server}"


@given(st.text())
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ValueError):
        parse_qstat(text)
    parse_submitted(text)
