"""Runs on PyTorch's meta device, whose tensors cannot be read, as those of a GPU cannot by NumPy."""

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from meta_cases import cases
from paths import SUPPORT

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None,
        reason="PyTorch is not installed here",
    ),
]
CASES = cases()
READS = {"fresh": 2, "moving": 1}
"""Waits of an evaluation: for its sums, and for those of the statistics of batch normalisation."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, Any]:
    """Results of all cases, from one process whose Keras uses PyTorch."""
    folder = tmp_path_factory.mktemp("answers")
    variables = os.environ | {
        "KERAS_BACKEND": "torch",
        "KERAS_TORCH_DEVICE": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": os.pathsep.join(map(str, [SUPPORT, *filter(None, sys.path)])),
    }
    command = [sys.executable, str(SUPPORT / "torch_on_meta.py"), str(folder)]
    done = subprocess.run(
        command, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "answers.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_run_needs_no_value_of_the_device(answers, name):
    """No step waits for it; an evaluation waits once for its sums, whatever its batches and metrics."""
    found = answers["cases"][name]
    assert "error" not in found, found["error"]
    assert found["steps"] == 2
    assert found["step"] == {}
    reads = READS[CASES[name].train["batch_norm"]]
    assert sum(found["evaluation"].values()) == reads + found["constants"], found[
        "evaluation"
    ]


def test_each_initialiser_draws_on_the_device(answers):
    found = answers["initial"]
    assert len(found) == 14
    assert {
        name: made for name, made in found.items() if made != ["meta", [6, 6]]
    } == {}
