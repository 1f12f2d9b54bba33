"""A site profile held against what sinfo and sacctmgr say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.features.check.ahead import JobNeeds, judge_account, judge_partition, slurm_lines
from scalestudy.launch.queue.site import memory_bytes
from scalestudy.launch.slurm import parse_sinfo, partition_seconds

SINFO = """\
gpu|up|1-00:00:00|16|48|192000+|gpu:v100:2(S:0-1)
cpu*|up|infinite|100|64+|250000|(null)
cpu*|up|infinite|4|128|1000000|(null)
old|down|30:00|2|8|16000|gpu:4,craynetwork:1
"""


def wanted(**changes):
    values = {
        "partition": None, "account": None, "seconds": 3600, "nodes": 2, "cpus": 24, "memory": 0, "gpus": 0,
    }  # fmt: skip
    return JobNeeds(**(values | changes))


def judged(**changes):
    (line,) = judge_partition(parse_sinfo(SINFO), wanted(**changes))
    return line


def test_each_kind_of_node_is_read():
    gpu, cpu, _, old = parse_sinfo(SINFO)
    assert (gpu.seconds, gpu.count, gpu.cpus, gpu.memory, gpu.gpus) == (86400, 16, 48, 192000 * 2**20, 2)
    assert (cpu.default, cpu.seconds, cpu.cpus, cpu.gpus) == (True, None, 64, 0)
    assert (old.up, old.seconds, old.gpus) == (False, 1800, 4)


@given(st.text())
def test_no_text_upsets_the_parser(text):
    parse_sinfo(text), partition_seconds(text)


@given(st.integers(1, 10**7))
def test_times_are_read_as_they_are_written(total):
    minutes, secs = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, rest = divmod(hours, 24)
    assert partition_seconds(f"{days}-{rest:02}:{minutes:02}:{secs:02}") == total
    assert partition_seconds(f"{hours}:{minutes:02}:{secs:02}") == total


@pytest.mark.parametrize(("text", "size"), [("180G", 180 * 2**30), ("500", 500 * 2**20), ("1.5T", 3 * 2**39)])
def test_memory_is_read_in_slurms_units(text, size):
    assert memory_bytes(text) == size


def test_the_default_partition_is_taken_when_none_is_named():
    assert judged().status == "pass" and "partition cpu" in judged().seen


def test_a_partition_that_is_not_there_fails_with_those_that_are():
    line = judged(partition="gpus")
    assert line.status == "fail" and "gpu, cpu, old" in line.action


def test_a_partition_that_is_down_warns():
    assert judged(partition="old").status == "warn"


def test_a_time_limit_above_the_partitions_fails_with_the_allowed_one():
    line = judged(partition="gpu", seconds=2 * 86400)
    assert line.status == "fail" and "1-00:00:00" in line.action


@pytest.mark.parametrize(
    "changes", [{"cpus": 256}, {"gpus": 4, "partition": "gpu"}, {"memory": 2**41}, {"nodes": 200}]
)
def test_more_than_the_nodes_have_fails(changes):
    assert judged(**changes).status == "fail"


def test_only_nodes_that_have_all_of_it_count():
    assert judged(cpus=100, nodes=4).status == "pass"
    assert judged(cpus=100, nodes=5).status == "fail"


def test_an_account_of_others_fails_with_ones_own():
    line = judge_account(["thes0001", "rwth"], wanted(account="other"))
    assert line.status == "fail" and "thes0001, rwth" in line.action
    assert judge_account(["rwth"], wanted(account="rwth")).status == "pass"
    assert judge_account(["rwth"], wanted()).status == "pass"


def test_without_accounting_an_account_is_told_to_be_unchecked():
    assert "is not checked" in judge_account([], wanted(account="rwth")).seen


def test_a_machine_without_slurm_fails_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    (line,) = slurm_lines(wanted())
    assert line.status == "fail" and line.action


def test_a_controller_that_does_not_answer_ends_with_the_limit(monkeypatch, tmp_path):
    for name in ("sinfo", "sacctmgr"):
        (tmp_path / name).write_text("#!/bin/sh\nexec /bin/sleep 600\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SCALESTUDY_SLURM_TIMEOUT", "0.3")
    (line,) = slurm_lines(wanted())
    assert line.status == "fail" and "0.3 s" in line.seen
