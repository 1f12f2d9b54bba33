import pytest
from hypothesis import given
from hypothesis import strategies as st
from sites import point, site

from scalestudy.launch.queue.site.layout import layout
from scalestudy.launch.queue.site.time_limit import notation, seconds


@given(st.integers(1, 10**7).map(lambda minutes: 60 * minutes))
def test_whole_minutes_are_written_as_they_are_read(total):
    assert seconds(notation(total)) == total


@given(st.integers(1, 10**7))
def test_a_limit_is_never_written_shorter_than_it_is(total):
    assert total <= seconds(notation(total)) < total + 60


@pytest.mark.parametrize(
    "text", ["", "30", "30:00", "1:60:00", "00:00:00", "1-2", "2-00:00", "-1:00:00", "1:00:0x"]
)
def test_other_forms_which_slurm_reads_in_ways_of_its_own_are_refused(text):
    with pytest.raises(ValueError, match="HH:MM:SS"):
        seconds(text)


def limits(strategy, **keys):
    on = site(cpus_per_node=4, time_limit="10:00:00", time_limit_minimum="01:00:00", **keys)
    return [layout(point(strategy, workers, on), on).seconds / 3600 for workers in (1, 4, 100)]


def test_a_limit_is_the_same_for_all_unless_it_scales():
    assert limits("horovod") == [10, 10, 10]


def test_workers_share_the_time_down_to_a_minimum():
    assert limits("horovod", time_limit_scaling="workers") == [10, 2.5, 1]


def test_virtual_workers_share_one_device_and_so_no_time():
    assert limits("virtual", time_limit_scaling="workers") == [10, 10, 10]
