"""Means, peaks and energy of a GPU from single samples."""

from itertools import pairwise

import pytest

from scalestudy.hardware.devices import Load
from scalestudy.measure.utilisation import WIDTH, DeviceUse


def used(*looks, seconds=2.0, windows=1):
    """Return the record of samples in windows of equal size, `seconds` apart."""
    use, each = DeviceUse(), len(looks) // windows
    for start in range(0, len(looks), max(1, each)):
        window = looks[start : start + each]
        for before, after in pairwise(window):
            use.stretch(before, after, seconds)
        use.window(window[0], window[-1])
    row = use.row()
    assert len(row) == WIDTH
    return DeviceUse(*row).record(3, 1)


def test_the_cards_own_counter_is_taken_over_integrated_power():
    found = used(Load(0, 5, 100, 1000), Load(50, 9, 300, 1500), Load(100, 7, 100, 2000))
    assert (found.rank, found.device, found.percent, found.memory_bytes) == (3, 1, 75, 9)
    assert (found.joules, found.energy_from, found.watts) == (1000, "counter", 250)


def test_without_a_counter_power_is_integrated_and_said_to_be():
    found = used(Load(power=100), Load(power=300), Load(power=100))
    assert (found.joules, found.energy_from, found.watts) == (800, "power", 200)


def test_how_long_memory_was_at_work_is_a_mean_of_its_own():
    found = used(Load(0, traffic=90), Load(50, traffic=10), Load(100), Load(30, traffic=30))
    assert (found.percent, found.memory_percent) == (60, 20)


def test_a_look_that_failed_costs_its_ends_and_not_the_energy():
    found = used(Load(power=100), Load(), Load(power=300))
    assert (found.joules, found.energy_from) == (800, "power")
    counted = used(Load(energy=10), Load(), Load(energy=30))
    assert (counted.joules, counted.energy_from) == (20, "counter")


def test_energy_that_does_not_cover_the_whole_time_is_left_open():
    found = used(Load(power=100), Load(power=100), Load(), Load())
    assert (found.joules, found.energy_from, found.watts) == (None, None, 100)


def test_a_counter_that_began_anew_is_not_gone_by():
    assert used(Load(energy=900), Load(energy=10)).joules is None


def test_between_windows_nothing_is_counted():
    found = used(Load(9, 1, 10, 0), Load(10, 1, 10, 20), Load(9, 1, 10, 500), Load(30, 1, 10, 520), windows=2)
    assert (found.joules, found.percent, found.watts) == (40, 20, 10)


@pytest.mark.parametrize("looks", [(), (Load(), Load(), Load())])
def test_what_was_never_told_is_blank_and_no_zero(looks):
    use = DeviceUse()
    for each in looks:
        use.stretch(each, each, 1.0)
    told = use.record(0, 0)
    assert (told.percent, told.memory_bytes, told.watts, told.joules, told.energy_from) == (None,) * 5


def test_two_processes_of_a_run_add_up_and_one_unknown_energy_leaves_the_sum_open():
    def row(*looks):
        use = DeviceUse()
        for before, after in pairwise(looks):
            use.stretch(before, after, 1.0)
        use.window(looks[0], looks[-1])
        return use

    counted = row(Load(10, 4, 100, 0, 9), Load(10, 6, 100, 50, 9))
    both = row(Load(40, 5, 100, 7, 9), Load(40, 5, 100, 27, 9)).after(counted).record(0, 0)
    assert (both.joules, both.percent, both.memory_bytes, both.memory_total_bytes) == (70, 25, 6, 9)
    dumb = row(Load(), Load())
    assert dumb.after(counted).record(0, 0).joules is None
    assert dumb.after(counted).record(0, 0).memory_bytes == 6
