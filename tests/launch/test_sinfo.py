"""Partitions as sinfo prints them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.launch.queue.site_profile import memory_bytes
from scalestudy.launch.slurm import parse_sinfo, partition_seconds

SINFO = """\
gpu|up|1-00:00:00|16|48|192000+|gpu:v100:2(S:0-1)
cpu*|up|infinite|100|64+|250000|(null)
cpu*|up|infinite|4|128|1000000|(null)
old|down|30:00|2|8|16000|gpu:4,craynetwork:1
"""


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
