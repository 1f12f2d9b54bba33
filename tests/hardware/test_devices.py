"""GPUs by UUID from a driver's answers; no GPU is needed."""

import sys

import pytest

from fake_nvml import GIB, GPU_IS_LOST, NO_PERMISSION, NOT_SUPPORTED, UNKNOWN, Card, cards
from scalestudy.hardware import devices
from scalestudy.hardware.devices import (
    driver_version,
    lendable_gpus,
    lowest_capability,
    read_gpus,
    set_bits,
    visible_gpus,
    visible_uuids,
)


def visible(names):
    return {} if names is None else {"CUDA_VISIBLE_DEVICES": names}


def divided(*names):
    parts = [None if name is None else Card(uuid=name, name="H100 MIG 1g", memory=10 * GIB) for name in names]
    return Card(uuid="GPU-mig", instances=parts)


def test_a_gpu_is_known_by_what_nvml_says_of_it(nvml):
    nvml(Card(uuid="GPU-aa", cpus=(0b101,)))
    (gpu,) = read_gpus()
    assert (gpu.index, gpu.uuid, gpu.name) == (0, "GPU-aa", "NVIDIA H100")
    assert (gpu.memory, gpu.capability, gpu.cpus) == (80 * GIB, (9, 0), (0, 2))


def test_without_a_driver_there_are_no_gpus(nvml):
    nvml(driver=None)
    assert read_gpus() == [] and driver_version() is None
    assert visible_gpus({}) == visible_gpus({"CUDA_VISIBLE_DEVICES": "0"}) == []


def test_without_its_library_pynvml_says_so_and_there_are_no_gpus(monkeypatch):
    """The real pynvml, which reports that its library is missing."""
    real = sys.modules.get("pynvml") or __import__("pynvml")
    monkeypatch.setattr(real, "nvmlInit", lambda: (_ for _ in ()).throw(real.NVMLError_LibraryNotFound()))
    assert read_gpus() == []


def test_what_nvml_does_not_say_of_a_card_is_left_open(nvml):
    silent = (
        "Name",
        "MemoryInfo",
        "CudaComputeCapability",
        "CpuAffinity",
        "MigMode",
    )
    nvml(Card(uuid="GPU-aa", fails={f"nvmlDeviceGet{each}": NOT_SUPPORTED for each in silent}))
    (gpu,) = read_gpus()
    assert (gpu.uuid, gpu.memory, gpu.capability, gpu.cpus) == ("GPU-aa", None, None, ())
    assert gpu.instances is None


def test_a_gpu_that_this_process_may_not_open_is_not_counted_and_the_others_are_there(nvml):
    first, *others = cards(3)
    first.fails = {"nvmlDeviceGetHandleByIndex": NO_PERMISSION}
    nvml(first, *others)
    assert [(gpu.index, gpu.uuid) for gpu in read_gpus()] == [(0, "GPU-b1"), (1, "GPU-c2")]
    assert visible_uuids(visible("1")) == ["GPU-c2"]  # CUDA numbers only the GPUs that the cgroup allows


@pytest.mark.parametrize("function", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID"])
def test_a_lost_gpu_keeps_its_number_and_the_others_are_there(nvml, function):
    first, second, third = cards(3)
    second.fails = {function: GPU_IS_LOST}
    nvml(first, second, third)
    assert [(gpu.index, gpu.uuid) for gpu in read_gpus()] == [(0, "GPU-a0"), (2, "GPU-c2")]
    assert visible_uuids({}) == ["GPU-a0", "GPU-c2"]
    assert visible_uuids(visible("2,0")) == ["GPU-c2", "GPU-a0"]
    assert visible_uuids(visible("0,1,2")) == ["GPU-a0"]  # CUDA stops at the first name without a GPU


def test_a_gpu_without_a_uuid_is_counted_all_the_same(nvml):
    only = Card(uuid="", fails={"nvmlDeviceGetUUID": UNKNOWN})
    nvml(only)
    assert [gpu.uuid for gpu in visible_gpus({})] == [""]
    assert visible_uuids({}) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, ["GPU-a0", "GPU-b1", "GPU-c2"]),
        ("2,0", ["GPU-c2", "GPU-a0"]),
        (" 1 , GPU-c2", ["GPU-b1", "GPU-c2"]),
        ("GPU-b", ["GPU-b1"]),
        ("GPU-", []),  # matches three GPUs
        ("G", []),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,7,2", ["GPU-a0"]),
        ("0,-1,1", ["GPU-a0"]),
        ("1,1,2", ["GPU-b1"]),
        ("MIG-1,0", []),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(nvml, names, expected):
    nvml(*cards(3))
    assert visible_uuids(visible(names)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, ["GPU-a0", "MIG-one"]),  # CUDA shows the first instance of a divided GPU
        ("1", ["MIG-one"]),
        ("GPU-mig", ["MIG-one"]),
        ("MIG-two", ["MIG-two"]),
        ("MIG-t", ["MIG-two"]),
        ("MIG-two,MIG-one,0", ["MIG-two", "MIG-one", "GPU-a0"]),
        ("MIG-", []),
        ("MIG-three,0", []),
    ],
)
def test_mig_instances_are_named_as_gpus_are(nvml, names, expected):
    nvml(*cards(1), divided(None, "MIG-one", "MIG-two"))
    assert visible_uuids(visible(names)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, ["GPU-a0", "MIG-one", "MIG-two"]),
        ("1", ["MIG-one", "MIG-two"]),
        ("GPU-mig,0", ["MIG-one", "MIG-two", "GPU-a0"]),
        ("MIG-two,0", ["MIG-two", "GPU-a0"]),
        ("0,7,1", ["GPU-a0"]),
        ("-1", []),
    ],
)
def test_a_process_of_one_device_may_be_given_any_instance_of_a_divided_gpu(nvml, names, expected):
    nvml(*cards(1), divided(None, "MIG-one", "MIG-two"))
    assert [gpu.uuid for gpu in lendable_gpus(visible(names))] == expected


def test_a_mig_instance_has_its_own_memory_and_lies_where_its_gpu_does(nvml):
    nvml(divided("MIG-one", "MIG-two"))
    (gpu,) = visible_gpus(visible("MIG-two"))
    assert (gpu.uuid, gpu.name, gpu.memory) == ("MIG-two", "H100 MIG 1g", 10 * GIB)
    assert gpu.index == 0


def test_a_gpu_that_is_divided_into_nothing_cannot_be_used(nvml):
    nvml(divided(), *cards(1))
    assert visible_uuids({}) == ["GPU-a0"]
    assert visible_uuids(visible("0,1")) == []


@pytest.mark.parametrize(("names", "count"), [(None, 3), ("1,2", 2), ("", 0), ("-1", 0), ("0,9", 1)])
def test_gpus_are_counted_as_they_may_be_used(nvml, monkeypatch, names, count):
    nvml(*cards(3))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, value in visible(names).items():
        monkeypatch.setenv(name, value)
    assert devices.gpus.__wrapped__() == count


def test_the_lowest_capability_is_that_of_the_visible_gpus_that_say_theirs(nvml, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    silent = Card(uuid="GPU-s", fails={"nvmlDeviceGetCudaComputeCapability": NOT_SUPPORTED})
    nvml(Card(uuid="GPU-v", capability=(7, 0)), Card(uuid="GPU-a", capability=(8, 0)), silent)
    assert lowest_capability() == (8, 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    assert lowest_capability() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert lowest_capability() == (7, 0)


def test_bits_of_several_words_count_on():
    assert set_bits([0b101, 0, 1]) == (0, 2, 128)
    assert set_bits([]) == ()
