"""GPUs distributed among the processes of a node."""

import pytest

from scalestudy.hardware.devices import Gpu, dealt, named, showing


def gpus(*uuids):
    return [Gpu(index, uuid, "H100") for index, uuid in enumerate(uuids)]


def visible(names):
    return {} if names is None else {"CUDA_VISIBLE_DEVICES": names}


@pytest.mark.parametrize(
    ("names", "places", "expected"),
    [
        (None, [1], ["1"]),
        ("", [1], ["1"]),
        ("4,5", [1], ["5"]),
        ("4,5", [0, 1], ["4", "5"]),
        ("4", [3], ["4"]),  # the launcher has already chosen
        ("GPU-x", [1], ["GPU-x"]),
    ],
)
def test_without_nvml_gpus_are_dealt_by_the_names_that_the_launcher_gave(names, places, expected):
    assert dealt(visible(names), [], places) == expected


@pytest.mark.parametrize(
    ("names", "places", "expected"),
    [
        (None, [1], ["GPU-b"]),
        ("4,5", [1], ["GPU-b"]),
        ("4,5", [0, 1], ["GPU-a", "GPU-b"]),
    ],
)
def test_with_nvml_they_are_dealt_by_uuid(names, places, expected):
    assert dealt(visible(names), gpus("GPU-a", "GPU-b"), places) == expected


def test_the_one_gpu_that_a_launcher_has_chosen_is_every_ranks_own():
    assert dealt(visible("5"), gpus("GPU-f"), [3]) == ["GPU-f"]


def test_where_one_has_no_uuid_all_are_dealt_by_name():
    assert dealt(visible("4,5"), gpus("GPU-a", ""), [0]) == ["4"]


@pytest.mark.parametrize("names", [None, "4,5"])
def test_a_rank_beyond_the_last_gpu_sees_none_rather_than_anothers(names):
    assert dealt(visible(names), gpus("GPU-a", "GPU-b"), [2]) == ["-1"]


def test_a_process_on_cpus_sees_no_gpu():
    assert showing([]) == {"CUDA_VISIBLE_DEVICES": "-1"}


def test_numbers_mean_what_nvml_counts():
    assert showing(["1", "0"]) == {"CUDA_VISIBLE_DEVICES": "1,0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def test_nothing_set_is_not_the_same_as_no_names():
    assert named({}) is None and named(visible("")) == [""] and named(visible("a, b")) == ["a", "b"]
