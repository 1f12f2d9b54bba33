"""RAPL's counters, in made trees of powercap: wrapping, closed, vanishing."""

import pytest

from scalestudy.hardware.cpu_energy import CpuEnergy
from trees import write


def domain(root, name, zone, energy, wrap=1_000_000):
    folder = root / zone
    for file, value in (("name", name), ("energy_uj", energy), ("max_energy_range_uj", wrap)):
        write(folder / file, value)
    return folder


@pytest.fixture
def two(tmp_path):
    """Two packages with their parts, the same packages again by another way, and the whole platform."""
    packages = [domain(tmp_path, f"package-{n}", f"intel-rapl:{n}", 900_000) for n in range(2)]
    domain(tmp_path, "core", "intel-rapl:0:0", 5)
    domain(tmp_path, "dram", "intel-rapl:1:1", 5)
    domain(tmp_path, "psys", "intel-rapl:2", 5)
    domain(tmp_path, "package-0", "intel-rapl-mmio:0", 900_000)
    return packages


def test_packages_add_up_once_and_without_their_parts(two, tmp_path):
    found = CpuEnergy(tmp_path)
    assert found.look() == 0
    write(two[0] / "energy_uj", 950_000)
    write(two[1] / "energy_uj", 901_000)
    assert found.look() == pytest.approx(0.051)


def test_a_counter_that_wraps_goes_on(two, tmp_path):
    found = CpuEnergy(tmp_path)
    for value in (999_000, 1_000, 400_000, 100):
        write(two[0] / "energy_uj", value)
        joules = found.look()
    assert joules == pytest.approx(0.1 + 1 + 0.0001)


def test_a_counter_that_vanishes_leaves_a_blank_for_good_and_says_why(two, tmp_path):
    found = CpuEnergy(tmp_path)
    (two[1] / "energy_uj").unlink()
    assert found.look() is None and "energy_uj cannot be read" in found.reason
    write(two[1] / "energy_uj", 950_000)
    assert found.look() is None


@pytest.mark.parametrize("text", ["", "none", "<error>"])
def test_a_counter_that_tells_no_number_is_a_blank(two, tmp_path, text):
    found = CpuEnergy(tmp_path)
    write(two[0] / "energy_uj", text)
    assert found.look() is None and found.reason


def test_counters_that_are_roots_alone_are_a_blank_with_that_reason(two, tmp_path, monkeypatch):
    read = type(tmp_path).read_text

    def closed(path, *given, **more):
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *given, **more)

    monkeypatch.setattr(type(tmp_path), "read_text", closed)
    found = CpuEnergy(tmp_path)
    assert found.look() is None
    assert found.reason == f"{two[0] / 'energy_uj'} may be read by root alone: the site can open it to all"


def test_a_machine_without_counters_says_so(tmp_path):
    found = CpuEnergy(tmp_path / "none")
    assert found.look() is None and "no package of RAPL" in found.reason
