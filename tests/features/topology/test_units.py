"""Sets of CPUs as the kernel writes them, and kinds of links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.features.topology.units import kind_of, numbers, ranges


@given(st.sets(st.integers(0, 300)))
def test_ranges_are_read_back(cpus):
    assert numbers(ranges(sorted(cpus))) == tuple(sorted(cpus))


def test_ranges_read_as_the_kernel_writes_them():
    assert ranges([0, 1, 2, 3, 8]) == "0-3,8"
    assert numbers("0-1,4\n") == (0, 1, 4)


def test_what_is_no_set_of_cpus_is_refused():
    with pytest.raises(ValueError, match="x"):
        numbers("0,x")


def test_the_number_of_nvlinks_is_not_a_kind():
    assert [kind_of(link) for link in ("NV1", "NV12", "NODE", "X")] == ["NV#", "NV#", "NODE", "X"]
