"""An engine computes on the GPUs that its process was given, or the run ends before it computes."""

import pytest

from linear import Linear
from scalestudy.hardware.no_gpus import Reason
from scalestudy.training.devices import set_up
from scalestudy.util.errors import RunError


class Point:
    name = "a-point"


class Engine(Linear):
    """Lists as many GPUs as it is told to."""

    def __init__(self, gpus):
        self.gpus = gpus

    def devices(self, device):
        return ["NVIDIA H100"] * self.gpus if device == "gpu" else ["CPU:0"]

    def why_missing(self):
        return Reason("it is built without CUDA", "Install another.")


def checked(listed, device, *given):
    set_up(Engine(listed), Point(), threads=1, device=device, gpus=given)


def test_as_many_gpus_as_were_given_and_any_cpu_are_taken():
    checked(2, "gpu", "GPU-a0", "GPU-b1")
    checked(0, "cpu")


@pytest.mark.parametrize("listed", [0, 1])
def test_fewer_are_refused_with_the_engines_own_reason(listed):
    with pytest.raises(RunError) as error:
        checked(listed, "gpu", "GPU-a0", "GPU-b1")
    assert "2 GPUs: GPU-a0, GPU-b1" in str(error.value)
    assert "it is built without CUDA" in str(error.value) and "Install another." in str(error.value)


def test_several_mig_instances_of_one_process_are_refused_for_what_they_are():
    with pytest.raises(RunError, match="one MIG instance"):
        checked(1, "gpu", "MIG-1", "MIG-2")


def test_more_are_refused_too():
    with pytest.raises(RunError, match="more than it was shown"):
        checked(8, "gpu", "GPU-a0")
