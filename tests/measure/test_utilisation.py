"""Utilisation of cores and GPUs, which never stops a run: samples, counters, rows and records."""

import math
import threading
import time
from itertools import pairwise

import numpy as np
import pytest

from fake_nvml import GPU_IS_LOST, Card, cards, mixed
from scalestudy.hardware.devices import Load
from scalestudy.measure import utilisation
from scalestudy.measure.utilisation import OF_NODE, OF_PROCESS, WIDTH, Counters, DeviceUse, Usage, Utilisation
from trees import write


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
            {"percent": 75, "memory_bytes": 9, "joules": 1000, "energy_from": "counter", "watts": 250},
        ),
        (  # without a counter, power is integrated
            (Load(power=100), Load(power=300), Load(power=100)),
            {"joules": 800, "energy_from": "power", "watts": 200},
        ),
        (  # how long memory was at work is a mean of its own
            (Load(0, traffic=90), Load(50, traffic=10), Load(100), Load(30, traffic=30)),
            {"percent": 60, "memory_percent": 20},
        ),
        # a look that failed costs its ends and not the energy
        ((Load(power=100), Load(), Load(power=300)), {"joules": 800, "energy_from": "power"}),
        ((Load(energy=10), Load(), Load(energy=30)), {"joules": 20, "energy_from": "counter"}),
        (  # energy that does not cover the whole time is left open
            (Load(power=100), Load(power=100), Load(), Load()),
            {"joules": None, "energy_from": None, "watts": 100},
        ),
        ((Load(energy=900), Load(energy=10)), {"joules": None}),  # a counter that began anew
    ],
)
def test_samples_give_means_peaks_and_energy(looks, expected):
    found = used(*looks)
    assert (found.rank, found.device) == (3, 1)
    assert {name: getattr(found, name) for name in expected} == expected


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


def machine(root, *, read=0, written=0, moved=0, energy=0):
    package = root / "sys/class/powercap/intel-rapl:0"
    write(root / "proc/self/io", f"rchar: 1\nread_bytes: {read}\nwrite_bytes: {written}")
    counts = f"a\nb\n lo: 1 0 0 0 0 0 0 0 1\n eth0: {moved} 0 0 0 0 0 0 0 {2 * moved}"
    write(root / "proc/self/net/dev", counts)
    for name, value in (("name", "package-0"), ("max_energy_range_uj", 10**9), ("energy_uj", energy)):
        write(package / name, value)


def totals(found):
    return dict(zip((*OF_PROCESS, *OF_NODE), found.totals().tolist(), strict=True))


def test_what_happens_outside_of_windows_is_not_counted(tmp_path):
    machine(tmp_path)
    found = Counters(True, tmp_path)
    for step in range(3):
        machine(tmp_path, read=10 * step, written=step, moved=100 * step, energy=10**6 * step)
        found.open()
        machine(tmp_path, read=10 * step + 4, written=step, moved=100 * step + 5, energy=10**6 * step + 10**5)
        found.close()
    told = totals(found)
    assert (told["read_bytes"], told["written_bytes"]) == (12, 0)
    assert (told["sent_bytes"], told["received_bytes"], told["loopback_bytes"]) == (30, 15, 0)
    assert told["cpu_joules"] == pytest.approx(0.3)
    assert told["cpu_seconds"] >= 0 and found.reasons() == {} and found.needs_looks


def test_a_counter_that_went_back_or_vanished_is_unknown_and_the_others_are_not(tmp_path):
    machine(tmp_path, moved=100, read=1)
    found = Counters(True, tmp_path)
    found.open()
    machine(tmp_path, moved=50, read=3)
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").unlink()
    found.close()
    machine(tmp_path, moved=60, read=3)
    found.open()
    found.close()
    told = totals(found)
    assert all(math.isnan(told[name]) for name in ("sent_bytes", "received_bytes", "cpu_joules"))
    assert (told["read_bytes"], told["loopback_bytes"]) == (2, 0)
    assert "energy_uj cannot be read" in found.reasons()["cpu_joules"]


def test_only_the_first_process_of_a_node_tells_of_it(tmp_path):
    machine(tmp_path)
    found = Counters(False, tmp_path)
    found.open()
    found.close()
    assert all(math.isnan(totals(found)[name]) for name in OF_NODE)
    assert totals(found)["read_bytes"] == 0
    assert found.reasons() == {} and not found.needs_looks


def test_a_kernel_that_tells_nothing_leaves_blanks_with_reasons(tmp_path):
    found = Counters(True, tmp_path)
    found.open()
    found.close()
    told = totals(found)
    assert [name for name, value in told.items() if not math.isnan(value)] == ["cpu_seconds"]
    assert found.reasons().keys() == {"cpu_joules", "read_bytes", "network_sent_bytes"}


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
