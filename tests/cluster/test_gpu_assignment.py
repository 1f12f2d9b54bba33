"""The GPUs that a launcher assigned, compared with those that exist."""

import pytest

from fake_nvml import Card, cards
from scalestudy.cluster.worker_environment import assigned_gpus, assignment, device_of, refuse_missing
from scalestudy.hardware.devices import read_gpus
from scalestudy.hardware.no_gpus import Reason
from scalestudy.util.errors import RunError, UserError


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, 0), ("", 0), ("0", 0), ("4", 4), ("GPU-a0,MIG-1", ("GPU-a0", "MIG-1")), (" 2 ", 2)],
)
def test_a_promise_is_a_number_or_names(value, expected):
    assert assigned_gpus({} if value is None else {"SCALESTUDY_GPUS": value}) == expected


@pytest.mark.parametrize("value", ["GPU-a0,", "two", "-1", "0,1", "²"])
def test_anything_else_is_refused(value):
    with pytest.raises(UserError, match="SCALESTUDY_GPUS"):
        assigned_gpus({"SCALESTUDY_GPUS": value})


def test_what_is_promised_is_read_as_it_was_written():
    assert assigned_gpus(assignment(["GPU-a0", "GPU-b1"])) == ("GPU-a0", "GPU-b1")
    assert assignment([]) == {}


@pytest.mark.parametrize(
    ("asked", "promise", "seen", "device"),
    [
        ("auto", 0, 0, "cpu"),
        ("auto", 0, 2, "gpu"),
        ("auto", 2, 0, "gpu"),  # refused later, instead of computing on CPUs
        ("gpu", 0, 0, "gpu"),
        ("cpu", 2, 2, "cpu"),
    ],
)
def test_what_was_promised_or_asked_for_is_never_computed_on_cpus(nvml, asked, promise, seen, device):
    nvml(*cards(seen))
    assert device_of(asked, promise, read_gpus()) == device


@pytest.mark.parametrize(("promise", "named"), [(0, "GPUs to"), (2, "2 GPUs to"), (("GPU-a0",), "GPU-a0 to")])
def test_where_none_is_seen_the_likely_reason_is_told(nvml, promise, named):
    nvml(*cards(1))
    with pytest.raises(RunError) as error:
        refuse_missing(promise, [], lambda: Reason("the driver is gone", "Mend it."))
    assert named in str(error.value) and "none: the driver is gone" in str(error.value)
    assert "Mend it." in str(error.value)


def test_a_promised_gpu_that_is_gone_is_named(nvml):
    nvml(*cards(2))
    refuse_missing(("GPU-b1",), read_gpus())
    with pytest.raises(RunError, match=r"no GPU-c2\. "):
        refuse_missing(("GPU-c2", "GPU-b1"), [])  # CUDA shows no GPU listed after a missing one


def test_mig_instances_are_promised_as_gpus_are(nvml):
    nvml(Card("GPU-x", instances=[Card("MIG-1")]))
    refuse_missing(("MIG-1",), read_gpus()[0].instances)
    with pytest.raises(RunError, match="no MIG-2"):
        refuse_missing(("MIG-1", "MIG-2"), read_gpus()[0].instances)
