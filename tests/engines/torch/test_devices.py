"""What PyTorch says of its GPUs, with stand-ins for them; all answers come from one process."""

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]

PROGRAM = """
import json
from unittest.mock import patch
from scalestudy.engines.torch.torch_engine import ENGINE, refuse_other_architectures
from scalestudy.util.errors import UserError

def refused(capability, architectures):
    try:
        refuse_other_architectures("GPU", capability, architectures)
    except UserError as error:
        return [error.expected, error.received, error.action]

usual = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]
cases = [
    ((8, 0), usual), ((8, 9), usual), ((12, 1), usual), ((13, 0), usual),  # the last by PTX
    ((7, 0), usual), ((11, 0), usual), ((13, 0), usual[:-1]), ((8, 0), ["sm_86"]),
    ((9, 0), ["sm_90a"]), ((10, 3), ["sm_100a"]), ((10, 3), ["sm_100f"]), ((9, 0), ["gfx90a"]),
]
answers = {"refused": [refused(*case) is not None for case in cases], "message": refused((7, 0), usual)}
gpus = {"device_count": 2, "get_device_capability": (7, 0), "get_device_name": "Tesla V100",
        "get_arch_list": usual}
peaks = {"max_memory_allocated": [70, 20], "max_memory_reserved": [80, 90]}
kept = [patch(f"torch.cuda.{name}", return_value=value) for name, value in gpus.items()]
kept += [patch(f"torch.cuda.{name}", side_effect=of.__getitem__) for name, of in peaks.items()]
for each in kept:
    each.start()
answers["memory"] = [ENGINE.gpu_memory("gpu"), ENGINE.gpu_memory("cpu")]

class Point:
    seed = 1
    class train:
        precision, deterministic = "float32", False

try:
    ENGINE.set_up(Point, threads=1, device="gpu")
except UserError as error:
    answers["set up"] = error.expected
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers() -> Any:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_peaks_of_tensors_and_of_the_allocator_are_reported_by_gpu(answers):
    assert answers["memory"] == [[[70, 80], [20, 90]], []]


def test_a_gpu_runs_code_of_its_generation_and_what_the_driver_compiles(answers):
    without_code = [False] * 4 + [True] * 4
    suffixed = [False, True, False]
    assert answers["refused"] == [*without_code, *suffixed, True]


def test_a_gpu_without_code_in_this_build_is_refused_before_it_is_used(answers):
    expected, received, action = answers["message"]
    assert "7.0" in expected and "sm_75" in received and 'device = "cpu"' in action
    assert "Tesla V100" in answers["set up"]
