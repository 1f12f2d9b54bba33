"""The usage of a process as a row of numbers and as records."""

import math

import numpy as np

from scalestudy.measure.utilisation import WIDTH, DeviceUse, Usage


def usage(*sums, node=True, gpus=()):
    return Usage(node, 5.0, np.array(sums or (10.0, 4.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.5)), gpus)


def test_a_row_gives_back_what_it_was_made_of():
    made = usage(gpus=(DeviceUse(*[1.0] * WIDTH), DeviceUse(*[2.0] * WIDTH)))
    found = Usage.of(np.array(made.row()))
    assert found.row() == made.row() and found.gpus == made.gpus and found.node
    assert len(usage().row()) == len(usage(node=False).row())


def test_records_hold_what_is_known_and_no_zero_for_what_is_not():
    found = usage(10.0, 4.0, math.nan, 2.0, 3.0, math.nan, 5.0, math.nan)
    process, node = found.process_use(3), found.node_use(3)
    assert (process.rank, process.cpu_seconds, process.read_bytes, process.written_bytes) == (3, 4, None, 2)
    assert (node.sent_bytes, node.received_bytes, node.loopback_bytes, node.cpu_joules) == (3, None, 5, None)
    assert found.cpu_percent == 40


def test_processes_of_one_run_add_up_and_one_blank_leaves_a_blank():
    found = usage().after(usage(30.0, 4.0, math.nan, 2.0, 3.0, 4.0, 5.0, 6.5))
    assert found.cpu_percent == 20
    assert found.process_use(0).read_bytes is None
    assert found.node_use(0).cpu_joules == 13
