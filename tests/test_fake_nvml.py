"""The stand-in for NVML answers as pynvml does, in this process and in others."""

import inspect
import os
import subprocess
import sys

import pynvml
import pytest

from fake_nvml import GPU_IS_LOST, NOT_SUPPORTED, Card, FakeNvml, cards, mixed, written

FUNCTIONS = [name for name in vars(FakeNvml) if name.startswith("nvml")]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_its_functions_have_the_names_and_arguments_of_pynvml(name):
    ours = list(inspect.signature(getattr(FakeNvml(), name)).parameters)
    theirs = inspect.signature(
        inspect.unwrap(getattr(pynvml, name))
    ).parameters.values()
    assert ours == [item.name for item in theirs if item.default is item.empty]


def test_a_refusal_is_an_error_of_pynvml():
    with pytest.raises(pynvml.NVMLError_GpuIsLost) as error:
        FakeNvml().nvmlDeviceGetName(Card("GPU-x", fails={"*": GPU_IS_LOST}))
    assert (
        error.value.value
        == FakeNvml().NVML_ERROR_GPU_IS_LOST
        == pynvml.NVML_ERROR_GPU_IS_LOST
    )
    with pytest.raises(pynvml.NVMLError_LibraryNotFound):
        FakeNvml(driver=None).nvmlInit()


def test_of_a_mig_instance_it_tells_the_memory_and_no_utilisation_power_or_energy():
    whole = mixed()[1]
    fake, part = FakeNvml(whole), whole.instances[0]
    assert fake.nvmlDeviceGetMemoryInfo(part).total == part.memory
    for ask in ("UtilizationRates", "PowerUsage", "TotalEnergyConsumption"):
        with pytest.raises(pynvml.NVMLError_NotSupported):
            getattr(fake, f"nvmlDeviceGet{ask}")(part)
    with pytest.raises(pynvml.NVMLError_NotSupported):
        fake.nvmlDeviceGetUtilizationRates(whole)
    assert fake.nvmlDeviceGetPowerUsage(whole) == whole.power
    assert fake.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part) is whole


def test_a_card_without_a_counter_says_so():
    with pytest.raises(pynvml.NVMLError) as error:
        FakeNvml().nvmlDeviceGetTotalEnergyConsumption(Card("GPU-x", energy=None))
    assert error.value.value == NOT_SUPPORTED


def test_another_process_finds_the_cards_that_were_written_for_it(tmp_path):
    program = (
        "from scalestudy.hardware.devices import read_gpus\n"
        "from scalestudy.hardware.nvml import driver_version\n"
        "print(driver_version(), *(gpu.uuid for gpu in read_gpus()))"
    )
    result = written(tmp_path / "nvml", cards(2), driver="535.1")
    paths = os.pathsep.join([result, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["535.1", "GPU-a0", "GPU-b1"]
