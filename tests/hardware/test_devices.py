"""GPUs by UUID from a driver's answers, their share of processes, and their load; no GPU is needed."""

import pytest

from fake_nvml import GIB, GPU_IS_LOST, NO_PERMISSION, NOT_SUPPORTED, Card, cards, mixed
from scalestudy.hardware.devices import (
    Gpu,
    dealt,
    lowest_capability,
    read_gpus,
    showing,
    visible_gpus,
    visible_uuids,
)
from scalestudy.hardware.gpu_load import GpuLoad, Load
from scalestudy.hardware.nvml import driver_version


def visible(names):
    return {} if names is None else {"CUDA_VISIBLE_DEVICES": names}


def divided(*names):
    parts = [
        None if name is None else Card(uuid=name, name="H100 MIG 1g", memory=10 * GIB)
        for name in names
    ]
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


def test_what_nvml_does_not_say_of_a_card_is_left_open(nvml):
    silent = ("Name", "MemoryInfo", "CudaComputeCapability", "CpuAffinity", "MigMode")
    nvml(
        Card(
            uuid="GPU-aa",
            fails={f"nvmlDeviceGet{each}": NOT_SUPPORTED for each in silent},
        )
    )
    (gpu,) = read_gpus()
    assert (gpu.uuid, gpu.memory, gpu.capability, gpu.cpus) == (
        "GPU-aa",
        None,
        None,
        (),
    )
    assert gpu.instances is None


def test_a_gpu_that_this_process_may_not_open_is_not_counted_and_the_others_are_there(
    nvml,
):
    first, *others = cards(3)
    first.fails = {"nvmlDeviceGetHandleByIndex": NO_PERMISSION}
    nvml(first, *others)
    assert [(gpu.index, gpu.uuid) for gpu in read_gpus()] == [
        (0, "GPU-b1"),
        (1, "GPU-c2"),
    ]
    assert visible_uuids(visible("1")) == [
        "GPU-c2"
    ]  # CUDA numbers only the GPUs that the cgroup allows


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID"]
)
def test_a_lost_gpu_keeps_its_number_and_the_others_are_there(nvml, function):
    first, second, third = cards(3)
    second.fails = {function: GPU_IS_LOST}
    nvml(first, second, third)
    assert [(gpu.index, gpu.uuid) for gpu in read_gpus()] == [
        (0, "GPU-a0"),
        (2, "GPU-c2"),
    ]
    assert visible_uuids({}) == ["GPU-a0", "GPU-c2"]
    assert visible_uuids(visible("2,0")) == ["GPU-c2", "GPU-a0"]
    assert visible_uuids(visible("0,1,2")) == [
        "GPU-a0"
    ]  # CUDA stops at the first name without a GPU


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
    ("names", "shown"),
    [
        (None, ["GPU-a0", "MIG-one"]),  # CUDA shows the first instance of a divided GPU
        ("1", ["MIG-one"]),
        ("GPU-mig,0", ["MIG-one", "GPU-a0"]),
        ("MIG-two", ["MIG-two"]),
        ("MIG-t", ["MIG-two"]),
        ("MIG-two,MIG-one,0", ["MIG-two", "MIG-one", "GPU-a0"]),
        ("MIG-", []),
        ("MIG-three,0", []),
        ("0,7,1", ["GPU-a0"]),
        ("-1", []),
    ],
)
def test_mig_instances_are_named_as_gpus_are(nvml, names, shown):
    nvml(*cards(1), divided(None, "MIG-one", "MIG-two"))
    assert visible_uuids(visible(names)) == shown


def test_a_mig_instance_has_its_own_memory_and_lies_where_its_gpu_does(nvml):
    nvml(divided("MIG-one", "MIG-two"))
    (gpu,) = visible_gpus(visible("MIG-two"))
    assert (gpu.uuid, gpu.name, gpu.memory) == ("MIG-two", "H100 MIG 1g", 10 * GIB)
    assert gpu.index == 0


def test_a_gpu_that_is_divided_into_nothing_cannot_be_used(nvml):
    nvml(divided(), *cards(1))
    assert visible_uuids({}) == ["GPU-a0"]
    assert visible_uuids(visible("0,1")) == []


def test_the_lowest_capability_is_that_of_the_visible_gpus_that_say_theirs(
    nvml, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    silent = Card(
        uuid="GPU-s", fails={"nvmlDeviceGetCudaComputeCapability": NOT_SUPPORTED}
    )
    nvml(
        Card(uuid="GPU-v", capability=(7, 0)),
        Card(uuid="GPU-a", capability=(8, 0)),
        silent,
    )
    assert lowest_capability() == (8, 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    assert lowest_capability() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert lowest_capability() == (7, 0)


def gpus(*uuids):
    return [Gpu(index, uuid, "H100") for index, uuid in enumerate(uuids)]


@pytest.mark.parametrize(
    ("names", "uuids", "places", "expected"),
    [
        # without NVML, by the names that the launcher gave
        (None, [], [1], ["1"]),
        ("", [], [1], ["1"]),
        ("4,5", [], [1], ["5"]),
        ("4,5", [], [0, 1], ["4", "5"]),
        ("4", [], [3], ["4"]),  # the launcher has already chosen
        ("GPU-x", [], [1], ["GPU-x"]),
        # with NVML, by UUID
        (None, ["GPU-a", "GPU-b"], [1], ["GPU-b"]),
        ("4,5", ["GPU-a", "GPU-b"], [1], ["GPU-b"]),
        ("4,5", ["GPU-a", "GPU-b"], [0, 1], ["GPU-a", "GPU-b"]),
        (
            "5",
            ["GPU-f"],
            [3],
            ["GPU-f"],
        ),  # the one that a launcher has chosen is every rank's own
        ("4,5", ["GPU-a", ""], [0], ["4"]),  # one without a UUID: all by name
        # a rank beyond the last GPU sees none, rather than another's
        (None, ["GPU-a", "GPU-b"], [2], ["-1"]),
        ("4,5", ["GPU-a", "GPU-b"], [2], ["-1"]),
    ],
)
def test_gpus_are_dealt_to_the_processes_of_a_node(names, uuids, places, expected):
    assert dealt(visible(names), gpus(*uuids), places) == expected


def test_a_process_on_cpus_sees_no_gpu_and_numbers_mean_what_nvml_counts():
    assert showing([]) == {"CUDA_VISIBLE_DEVICES": "-1"}
    assert showing(["1", "0"]) == {
        "CUDA_VISIBLE_DEVICES": "1,0",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def test_a_gpu_tells_how_busy_it_is_how_full_and_what_it_draws(nvml):
    (card,) = cards(1, busy=70, used=3 * GIB, power=250_500, energy=1_234_567)
    nvml(card)
    assert GpuLoad(["GPU-a0"]).look() == [
        Load(70.0, 3 * GIB, 250.5, 1234.567, 80 * GIB, 35.0)
    ]


def test_unlike_devices_answer_each_for_itself_in_the_order_of_their_names(nvml):
    nvml(*mixed())
    found = GpuLoad(["GPU-d3", "MIG-2", "GPU-a0", "GPU-none", "GPU-c2"]).look()
    lost, part, volta, unknown, ada = found
    assert lost == unknown == Load()
    assert part == Load(
        memory=GIB, total=40 * GIB
    )  # of an instance NVML reports nothing else
    assert (volta.busy, volta.power, volta.energy) == (0.0, 300.0, None)
    assert (ada.busy, ada.energy) == (20.0, 0.0)


def test_a_device_that_is_lost_later_goes_blank_and_the_others_go_on(nvml):
    one, two = cards(2)
    nvml(one, two)
    load = GpuLoad(["GPU-a0", "GPU-b1"])
    one.fails, two.fails = (
        {"*": GPU_IS_LOST},
        {"nvmlDeviceGetPowerUsage": NOT_SUPPORTED},
    )
    assert load.look() == [Load(), Load(10.0, GIB, None, 0.0, 80 * GIB, 5.0)]


def test_without_a_driver_or_names_there_is_nothing_to_tell(nvml):
    nvml(driver=None)
    assert GpuLoad(["GPU-a0"]).look() == [Load()] and GpuLoad([]).look() == []
