"""What a training step gives a device to do, a task's own optimizer, and compilation."""

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from paths import SUPPORT

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]
MOST = {"cnn": 2.0, "unet": 1.3, "resnet50": 1.3}
"""Largest number of operators of a step, relative to a plain loop."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, Any]:
    """Counts from a process whose Keras uses PyTorch."""
    folder = tmp_path_factory.mktemp("steps")
    variables = os.environ | {
        "KERAS_BACKEND": "torch",
        "KERAS_TORCH_DEVICE": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": os.pathsep.join(map(str, [SUPPORT, *filter(None, sys.path)])),
    }
    command = [sys.executable, str(SUPPORT / "torch_steps.py"), str(folder)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "steps.json").read_text())


def test_no_step_waits_for_the_device(answers):
    """Under every optimizer, for modules and Keras models, with clipping, in float16 and in micro-batches."""
    assert len(answers["waits"]) == 36
    assert {case: waits for case, waits in answers["waits"].items() if waits} == {}


def test_no_file_is_touched_between_two_steps(answers):
    """On a shared file system, thousands of ranks would."""
    assert answers["file_calls"] == []


@pytest.mark.parametrize("model", MOST)
def test_a_step_has_hardly_more_operators_than_a_plain_loop(answers, model):
    ours, plain = answers["kernels"][model]
    assert plain > 40
    assert ours <= MOST[model] * plain


def test_an_evaluation_of_accuracy_stays_on_the_device(answers):
    assert (answers["evaluation"]["accuracy"], answers["evaluation"]["matrix"]) == (0, 0)


@pytest.mark.parametrize("kind", ["Ada", "SGD"])
def test_an_optimizer_with_groups_and_a_scheduler_are_those_of_a_plain_loop(answers, kind):
    found = answers["own_optimizers"][kind]
    assert found["plain"] < 1e-14
    assert found["rates"] == [4, pytest.approx(2)]


@pytest.mark.parametrize("kind", ["Ada", "SGD"])
def test_a_run_with_its_own_optimizer_goes_on_bit_for_bit(answers, kind):
    assert answers["own_optimizers"][kind]["resumed"] == 0


@pytest.mark.parametrize("model", ["torch_cnn", "torch_unet"])
def test_a_compiled_module_is_one_graph(answers, model):
    assert answers["compiled"][model] == 1
