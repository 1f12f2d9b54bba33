"""Utilisation of cores and GPUs, which never stops a run."""

import threading
import time

import pytest

from fake_nvml import GPU_IS_LOST, Card, cards, mixed
from scalestudy.measure import utilisation
from scalestudy.measure.utilisation import Utilisation

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


def test_a_device_lost_in_a_window_keeps_what_it_told(nvml):
    card = Card("GPU-a0", used=7)
    nvml(card)
    found = Utilisation(1, ["GPU-a0"])
    with found:
        card.fails = {"*": GPU_IS_LOST}
    (use,) = told(found)
    assert (use.percent, use.memory_bytes, use.energy_from) == (None, 7, "power")


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
    assert both.sums[0] > kept.sums[0] > 0


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
def test_without_what_earlier_processes_used_or_with_other_gpus_it_is_not_whole(nvml, row):
    nvml(*cards(1))
    found = Utilisation(1, ["GPU-a0"])
    found.resume(row)
    assert not found.whole


def test_mig_instances_are_said_to_tell_no_energy(nvml):
    nvml(*mixed())
    assert "MIG" in Utilisation(1, ["MIG-1"]).reasons()["gpu_joules"]
    assert "gpu_joules" not in Utilisation(1, ["GPU-c2"]).reasons()
