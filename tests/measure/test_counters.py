"""Counters within windows, from synthetic `/proc` and `/sys`."""

import math

import pytest

from scalestudy.measure.utilisation import OF_NODE, OF_PROCESS, Counters


def machine(root, *, read=0, written=0, moved=0, energy=0):
    files = {
        "proc/self/io": f"rchar: 1\nread_bytes: {read}\nwrite_bytes: {written}\n",
        "proc/self/net/dev": f"a\nb\n lo: 1 0 0 0 0 0 0 0 1\n eth0: {moved} 0 0 0 0 0 0 0 {2 * moved}\n",
        "sys/class/powercap/intel-rapl:0/name": "package-0",
        "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "1000000000",
        "sys/class/powercap/intel-rapl:0/energy_uj": str(energy),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


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
