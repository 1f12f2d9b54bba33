import pytest
from hypothesis import given
from hypothesis import strategies as st
from sites import point, site

from scalestudy.launch.queue.layout import layout
from scalestudy.launch.queue.site import notation, seconds


@given(st.integers(1, 10**7).map(lambda minutes: 60 * minutes))
def test_whole_minutes_are_written_as_they_are_read(total):
    assert seconds(notation(total)) == total


@given(st.integers(1, 10**7))
def test_a_limit_is_never_written_shorter_than_it_is(total):
    assert total <= seconds(notation(total)) < total + 60


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90), ("90:30", 90.5), ("30:00", 30), ("1:30:00", 90), ("100:00:00", 6000), ("2-12", 3600),
        ("2-12:30", 3630), ("2-12:30:15", 3630.25), ("0-1", 60), (" 00:10:00 ", 10),
    ],
)  # fmt: skip
def test_times_are_read_as_slurm_takes_them(text, minutes):
    assert seconds(text) == 60 * minutes


@pytest.mark.parametrize("text", ["infinite", "INFINITE", "UNLIMITED", "-1"])
def test_no_limit_has_words_of_its_own(text):
    assert seconds(text) is None
    assert notation(None) == "UNLIMITED"


@pytest.mark.parametrize(
    "text", ["", "0", "00:00:00", "1:60:00", "1:00:60", "2-", "-2", "1:2:3", "1:00:0x", "1h", "२", "1-1-1"]
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="as Slurm writes it"):
        seconds(text)


def limits(strategy, **keys):
    on = site(cpus_per_node=4, time_limit="10:00:00", time_limit_minimum="01:00:00", **keys)
    return [layout(point(strategy, workers, on), on).seconds / 3600 for workers in (1, 4, 100)]


def test_a_limit_is_the_same_for_all_unless_it_scales():
    assert limits("horovod") == [10, 10, 10]


def test_what_has_no_limit_has_none_however_it_scales():
    on = site(time_limit="infinite", time_limit_scaling="workers")
    assert layout(point("horovod", 4, on), on).seconds is None


def test_workers_share_the_time_down_to_a_minimum():
    assert limits("horovod", time_limit_scaling="workers") == [10, 2.5, 1]


def test_virtual_workers_share_one_device_and_so_no_time():
    assert limits("virtual", time_limit_scaling="workers") == [10, 10, 10]
