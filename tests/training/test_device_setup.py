"""An engine computes on the GPUs of its process, or the run ends before it computes."""

import numpy as np
import pytest

from linear import Linear
from scalestudy.engines.group import Group
from scalestudy.hardware.no_gpus import Reason
from scalestudy.training.device_setup import refuse_shared_gpus, set_up_engine
from scalestudy.util.errors import RunError, UserError


class Point:
    name = "a-point"


class Engine(Linear):
    """Lists this many GPUs."""

    def __init__(self, gpus):
        self.gpus = gpus

    def devices(self, device):
        return ["NVIDIA H100"] * self.gpus if device == "gpu" else ["CPU:0"]

    def why_missing(self):
        return Reason("it is built without CUDA", "Install another.")


def checked(listed, device, *given):
    set_up_engine(Engine(listed), Point(), threads=1, device=device, gpus=given)


def test_as_many_gpus_as_were_given_and_any_cpu_are_taken():
    checked(2, "gpu", "GPU-a0", "GPU-b1")
    checked(0, "cpu")


@pytest.mark.parametrize("listed", [0, 1])
def test_fewer_are_refused_with_the_engines_own_reason(listed):
    with pytest.raises(RunError) as error:
        checked(listed, "gpu", "GPU-a0", "GPU-b1")
    assert "2 GPUs: GPU-a0, GPU-b1" in str(error.value)
    assert "it is built without CUDA" in str(error.value) and "Install another." in str(
        error.value
    )


def test_several_mig_instances_of_one_process_are_refused_for_what_they_are():
    with pytest.raises(RunError, match="one MIG instance"):
        checked(1, "gpu", "MIG-1", "MIG-2")


def test_more_are_refused_too():
    with pytest.raises(RunError, match="more GPUs than it was shown"):
        checked(8, "gpu", "GPU-a0")


class Others(Group):
    """A group whose other ranks compute on these GPUs."""

    def __init__(self, *uuids: str) -> None:
        super().__init__(len(uuids), len(uuids) + 1)
        self._names = np.array([uuid.encode() for uuid in uuids], "S96")

    def gather(self, arrays):
        return [np.concatenate([self._names, *arrays])]


def test_processes_on_one_gpu_are_refused_by_their_ranks():
    with pytest.raises(UserError, match="ranks 1, 2 share"):
        refuse_shared_gpus(Others("GPU-a", "GPU-b"), ["GPU-b"])


def test_gpus_of_their_own_pass_and_so_do_those_without_a_name():
    refuse_shared_gpus(Others("GPU-a", "GPU-b"), ["GPU-c"])
    refuse_shared_gpus(Others("", "GPU-b"), [])
    refuse_shared_gpus(Group(), ["GPU-a"])
