"""Memory that this process may use."""

import os

from scalestudy.machine.memory import memory_limit


def test_the_memory_limit_is_at_most_the_machine():
    assert 0 < memory_limit() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
