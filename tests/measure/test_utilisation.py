"""Utilisation of cores and GPUs, which never stops a run: samples, counters, rows and records."""

import threading
import time
from dataclasses import fields
from itertools import pairwise

import pytest

from fake_nvml import cards, mixed
from scalestudy.hardware.gpu_load import Load
from scalestudy.measure import utilisation
from scalestudy.measure.utilisation import DeviceUse, Usage, Utilisation

WIDTH = len(fields(DeviceUse))


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


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        (  # the card's own counter is taken over integrated power
            (Load(0, 5, 100, 1000), Load(50, 9, 300, 1500), Load(100, 7, 100, 2000)),
            {
                "percent": 75,
                "memory_bytes": 9,
                "joules": 1000,
                "energy_from": "counter",
                "watts": 250,
            },
        ),
        (  # without a counter, power is integrated
            (Load(power=100), Load(power=300), Load(power=100)),
            {"joules": 800, "energy_from": "power", "watts": 200},
        ),
        (  # how long memory was at work is a mean of its own
            (
                Load(0, traffic=90),
                Load(50, traffic=10),
                Load(100),
                Load(30, traffic=30),
            ),
            {"percent": 60, "memory_percent": 20},
        ),
        # a look that failed costs its ends and not the energy
        (
            (Load(power=100), Load(), Load(power=300)),
            {"joules": 800, "energy_from": "power"},
        ),
        (
            (Load(energy=10), Load(), Load(energy=30)),
            {"joules": 20, "energy_from": "counter"},
        ),
        (  # energy that does not cover the whole time is left open
            (Load(power=100), Load(power=100), Load(), Load()),
            {"joules": None, "energy_from": None, "watts": 100},
        ),
        (
            (Load(energy=900), Load(energy=10)),
            {"joules": None},
        ),  # a counter that began anew
    ],
)
def test_samples_give_means_peaks_and_energy(looks, expected):
    found = used(*looks)
    assert (found.rank, found.device) == (3, 1)
    assert {name: getattr(found, name) for name in expected} == expected


def test_between_windows_nothing_is_counted():
    found = used(
        Load(9, 1, 10, 0),
        Load(10, 1, 10, 20),
        Load(9, 1, 10, 500),
        Load(30, 1, 10, 520),
        windows=2,
    )
    assert (found.joules, found.percent, found.watts) == (40, 20, 10)


def test_two_processes_of_a_run_add_up_and_one_unknown_energy_leaves_the_sum_open():
    def row(*looks):
        use = DeviceUse()
        for before, after in pairwise(looks):
            use.stretch(before, after, 1.0)
        use.window(looks[0], looks[-1])
        return use

    counted = row(Load(10, 4, 100, 0, 9), Load(10, 6, 100, 50, 9))
    both = (
        row(Load(40, 5, 100, 7, 9), Load(40, 5, 100, 27, 9)).after(counted).record(0, 0)
    )
    assert (both.joules, both.percent, both.memory_bytes, both.memory_total_bytes) == (
        70,
        25,
        6,
        9,
    )
    dumb = row(Load(), Load())
    assert dumb.after(counted).record(0, 0).joules is None
    assert dumb.after(counted).record(0, 0).memory_bytes == 6


def usage(core_seconds=10.0, cpu_seconds=4.0, node=True, gpus=()):
    return Usage(node, 5.0, core_seconds, cpu_seconds, gpus)


def test_a_row_gives_back_what_it_was_made_of():
    made = usage(gpus=(DeviceUse(*[1.0] * WIDTH), DeviceUse(*[2.0] * WIDTH)))
    assert Usage.of(made.row()) == made
    assert len(usage().row()) == len(usage(node=False).row())


def test_processes_of_one_run_add_up():
    assert usage().cpu_percent == 40
    both = usage().after(usage(30.0))
    assert (both.cpu_percent, both.cpu_seconds) == (20, 8)


LOOK = "nvmlDeviceGetMemoryInfo"


def told(found):
    return found.usage().gpu_uses(0)


def samplers():
    return [each for each in threading.enumerate() if each.name == "utilisation"]


def looks(fake, uuid):
    return fake.asked.count((LOOK, uuid))


def test_the_shortest_window_counts_and_nothing_outside_of_windows(nvml):
    (card,) = cards(1, busy=100, energy=1000)
    fake = nvml(card)
    found = Utilisation(1, ["GPU-a0"])
    assert looks(fake, "GPU-a0") == 0
    for _ in range(3):
        with found:
            card.energy += 5000
        card.energy += 10**9
        card.busy = 40
    assert looks(fake, "GPU-a0") == 6
    (use,) = told(found)
    assert use.joules == pytest.approx(15) and use.energy_from == "counter"
    assert 40 < use.percent <= 100


def test_one_sampler_serves_all_windows_and_looks_while_they_last(nvml, monkeypatch):
    monkeypatch.setattr(utilisation, "EVERY", 0.001)
    fake, before = nvml(*cards(2)), len(samplers())
    found = Utilisation(1, ["GPU-b1", "GPU-a0"])
    for _ in range(3):
        seen = looks(fake, "GPU-b1")
        deadline = time.monotonic() + 300
        with found:
            while looks(fake, "GPU-b1") < seen + 5:
                assert time.monotonic() < deadline
    assert len(samplers()) == before + 1
    assert [use.percent for use in told(found)] == pytest.approx([10, 0])


def test_mig_names_and_lost_devices_do_not_lose_the_others(nvml):
    nvml(*mixed())
    found = Utilisation(1, ["GPU-d3", "MIG-1", "GPU-c2"])
    with found:
        pass
    lost, part, good = told(found)
    assert (lost.percent, lost.memory_bytes, lost.joules) == (None, None, None)
    assert (part.percent, part.memory_bytes, part.joules) == (None, 2**30, None)
    assert (good.percent, good.watts is not None) == (20, True)


def test_without_a_driver_gpus_are_blank_and_without_gpus_there_is_no_sampler(nvml):
    nvml(driver=None)
    before = len(samplers())
    with Utilisation(1, []) as none:
        pass
    assert told(none) == [] and len(samplers()) == before
    with Utilisation(1, ["GPU-a0"]) as found:
        pass
    assert told(found)[0].percent is None


def test_cores_in_use_are_told_in_per_cent_of_those_granted():
    with Utilisation(1, []) as found:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
    assert found.usage().cpu_percent > 0 and told(found) == []


def test_what_earlier_processes_used_is_added_and_peaks_are_kept(nvml):
    (card,) = cards(1, energy=0, used=5)
    nvml(card)
    first = Utilisation(2, ["GPU-a0"], node=True, memory=lambda: [(70, 80)])
    with first:
        card.energy += 3000
    kept = first.usage()
    card.used = 3
    second = Utilisation(2, ["GPU-a0"], node=True, memory=lambda: [(20, None)])
    second.resume(kept.row())
    with second:
        card.energy += 4000
    both = second.usage()
    (use,) = both.gpu_uses(0)
    assert second.whole
    assert (use.joules, use.memory_bytes) == (pytest.approx(7), 5)
    assert (use.allocated_bytes, use.reserved_bytes) == (70, 80)
    assert both.core_seconds > kept.core_seconds > 0


def test_an_open_window_is_told_as_far_as_it_has_come(nvml):
    (card,) = cards(1, energy=0)
    nvml(card)
    found = Utilisation(1, ["GPU-a0"])
    with found:
        card.energy += 1000
        assert told(found)[0].joules == pytest.approx(1)
        card.energy += 1000
    assert told(found)[0].joules == pytest.approx(2)


@pytest.mark.parametrize("row", [(), Utilisation(1, []).usage().row()])
def test_without_what_earlier_processes_used_or_with_other_gpus_it_is_not_whole(
    nvml, row
):
    nvml(*cards(1))
    found = Utilisation(1, ["GPU-a0"])
    found.resume(row)
    assert not found.whole


def test_mig_instances_are_said_to_tell_no_energy(nvml):
    nvml(*mixed())
    assert "MIG" in Utilisation(1, ["MIG-1"]).reasons()["gpu_joules"]
    assert "gpu_joules" not in Utilisation(1, ["GPU-c2"]).reasons()
