"""Utilisation of cores and GPUs, which never stops a run."""

import sys
import threading
import time

import pytest

from fake_nvml import GPU_IS_LOST, Card, FakeNvml, cards
from scalestudy.measure import utilisation
from scalestudy.measure.utilisation import Utilisation


@pytest.fixture
def watched(monkeypatch):
    """What is measured of some GPUs once they were looked at a few times."""

    def measure(fake, uuids):
        looks, enough = [], threading.Event()
        ask = fake.nvmlDeviceGetUtilizationRates

        def counted(card):
            looks.append(card)
            if len(looks) >= 6:
                enough.set()
            return ask(card)

        fake.nvmlDeviceGetUtilizationRates = counted
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        monkeypatch.setattr(utilisation, "EVERY", 0.001)
        with Utilisation(1, uuids) as found:
            assert enough.wait(30)
        return found.gpu_percent()

    return measure


def test_gpus_are_looked_at_by_uuid(watched):
    assert watched(FakeNvml(*cards(4)), ["GPU-b1", "GPU-d3"]) == pytest.approx(20)


def test_mig_names_and_lost_devices_do_not_lose_the_others(watched):
    lost, good = cards(2)
    lost.fails = {"*": GPU_IS_LOST}
    part = Card(uuid="MIG-1", fails={"nvmlDeviceGetUtilizationRates": 3})
    fake = FakeNvml(lost, good, Card(uuid="GPU-mig", instances=[part]))
    assert watched(fake, ["MIG-1", "GPU-a0", "GPU-b1"]) == pytest.approx(10)


def test_without_a_driver_there_is_no_utilisation_of_gpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(driver=None))
    with Utilisation(1, ["GPU-a0"]) as found:
        pass
    assert found.gpu_percent() is None


def test_cores_in_use_are_told_in_per_cent_of_those_granted():
    with Utilisation(1, []) as found:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
    assert found.cpu_percent() > 0 and found.gpu_percent() is None
