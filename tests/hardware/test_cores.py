"""Cores that this process may use, and staying on some of them."""

import os
import threading

import pytest

from scalestudy.hardware import cores

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no processes")


def test_what_is_granted_is_what_the_kernel_says():
    assert cores.granted() == sorted(os.sched_getaffinity(0))


def test_within_only_these_cores_are_granted_and_afterwards_all_as_before():
    before = cores.granted()
    with pytest.raises(ZeroDivisionError), cores.only_on(before[:1]):  # noqa: PT012
        assert cores.granted() == before[:1]
        _ = 1 / 0
    assert cores.granted() == before


def test_no_cores_named_means_all_that_are_granted():
    before = cores.granted()
    with cores.only_on([]):
        assert cores.granted() == before


def test_staying_on_cores_belongs_to_the_calling_thread():
    before, seen = cores.granted(), []

    def stay():
        cores.stay_on(before[-1:])
        seen.append(cores.granted())

    thread = threading.Thread(target=stay)
    thread.start()
    thread.join()
    assert seen == [before[-1:]] and cores.granted() == before


def test_a_core_that_is_not_there_is_refused():
    with pytest.raises(OSError, match="Invalid argument"):
        cores.stay_on([99999])
