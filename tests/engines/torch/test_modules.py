"""PyTorch modules, steps and devices: what one process that computes them all answers."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paths import PROJECT, SUPPORT

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None,
        reason="PyTorch is not installed here",
    ),
]
ROUNDING = 1e-12
MOST = {"cnn": 2.0, "unet": 1.3, "keras unet": 1.15}
"""Largest number of operators of a step, relative to a plain loop."""
LEARNT = ["5.weight", "5.bias"]
OF_PRETRAINED = ["0.weight", "0.bias", "1.weight", "1.bias"]
STATISTICS = ["1.running_mean", "1.running_var", "1.num_batches_tracked"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, Any]:
    """Results from a process whose Keras uses PyTorch."""
    folder = tmp_path_factory.mktemp("answers")
    variables = os.environ | {
        "KERAS_BACKEND": "torch",
        "KERAS_TORCH_DEVICE": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": os.pathsep.join(map(str, [SUPPORT, *filter(None, sys.path)])),
    }
    command = [sys.executable, str(SUPPORT / "torch_steps.py"), str(folder)]
    done = subprocess.run(
        command, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "answers.json").read_text())


def test_no_step_waits_for_the_device(answers):
    """Under every optimizer, for modules and Keras models, with clipping, in float16 and in micro-batches."""
    assert len(answers["waits"]) == 30
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
    assert answers["evaluation"] == 0


@pytest.mark.parametrize("kind", ["Ada", "SGD"])
def test_an_optimizer_with_groups_and_a_scheduler_are_those_of_a_plain_loop(
    answers, kind
):
    found = answers["own_optimizers"][kind]
    assert found["plain"] < 1e-14
    assert found["rates"] == [4, pytest.approx(2)]


@pytest.mark.parametrize("kind", ["Ada", "SGD"])
def test_a_run_with_its_own_optimizer_goes_on_bit_for_bit(answers, kind):
    assert answers["own_optimizers"][kind]["resumed"] == 0


def test_a_compiled_module_has_a_graph_of_its_own_for_each_size_of_batch(answers):
    """The last batch is compiled first; a graph for any size would then compute all others."""
    assert answers["last_batches"] == [True, True]


def test_gradients_are_summed_in_buckets_that_a_compiled_module_takes(answers):
    found = answers["exchanged"]
    assert found["auto"] == found["auto, compiled"] == [None, 2]
    assert found["all, compiled"] == [1, 2]
    assert found["64 KiB"] == [1 / 16, 2]


def test_a_branch_that_is_not_taken_asks_for_the_key_that_allows_it(answers):
    found = answers["exchanged"]
    received, action = found["branches"]
    assert "other.weight, other.bias" in received
    assert "find_unused_parameters = true under [train]" in action
    assert found["branches, searched"] == [None, 2]


@pytest.mark.parametrize("model", ["torch_cnn", "torch_unet"])
def test_a_compiled_module_is_one_graph(answers, model):
    assert answers["compiled"][model] == 1


def test_peaks_of_tensors_and_of_the_allocator_are_reported_by_gpu(answers):
    assert answers["devices"]["memory"] == [[[70, 80], [20, 90]], []]


def test_a_gpu_runs_code_of_its_generation_and_what_the_driver_compiles(answers):
    without_code = [False] * 4 + [True] * 4
    suffixed = [False, True, False]
    assert answers["devices"]["refused"] == [*without_code, *suffixed, True]


def test_a_gpu_without_code_in_this_build_is_refused_before_it_is_used(answers):
    expected, received, action = answers["devices"]["message"]
    assert "7.0" in expected and "sm_75" in received and 'device = "cpu"' in action
    assert "Tesla V100" in answers["devices"]["set up"]


@pytest.mark.parametrize("name", ["unet", "unet of 4 classes", "cnn"])
def test_a_built_in_module_computes_what_the_keras_model_of_its_name_does(
    answers, name
):
    """With copied weights: outputs, losses and the quality, and training outputs with dropout."""
    found = answers["architectures"][name]
    for key in ("parameters", "flops"):
        assert found[key][0] == found[key][1], key
    assert max(*found["differences"], found["training"]) < 1e-6


def test_modules_are_evaluated_with_statistics_of_training_samples(answers):
    found = answers["fresh"]
    assert found["left"] == 0
    assert max(found["workers"], found["known"]) < ROUNDING


def test_optimizers_by_name_are_those_of_torch_optim_with_its_constants(answers):
    assert len(answers["optimizers"]) == 5
    assert max(answers["optimizers"].values()) < 1e-15


def test_a_loss_of_pytorch_is_that_of_each_sample_however_it_is_given(answers):
    losses = answers["objectives"]["losses"]
    for name in ("object", "class", "function", "own", "of the data"):
        assert losses[name] == pytest.approx(losses["name"], rel=1e-6), name
    pixels = answers["objectives"]["pixels"]
    assert pixels["object"] == pytest.approx(pixels["name"], rel=1e-6)


def test_outputs_that_are_not_what_logits_says_are_noted_or_refused(answers):
    found = answers["objectives"]["notes"]
    by_name = {"net True": 0, "soft True": 1, "soft False": 0, "net False": "refused"}
    assert found == by_name | {
        "net CrossEntropyLoss": [],
        "soft CrossEntropyLoss": [True],
        "soft cross_entropy": [True],
        "small": 0,
        "sigmoid": 1,
    }
    assert "Linear" in answers["objectives"]["class"]
    assert "Linear" in answers["objectives"]["metric"]
    assert "mat1 and mat2" in answers["objectives"]["width"]
    assert "inputs['a'], inputs['b']" in answers["objectives"]["arguments"]


def test_a_module_that_something_wraps_is_refused_and_a_lazy_one_is_taken(answers):
    found = answers["objectives"]
    kinds = ("OptimizedModule", "RecursiveScriptModule", "DataParallel")
    assert [received.split()[0] for received in found["wrapped"]] == list(kinds)
    assert found["lazy"] == 16 * 3 + 3
    assert found["latent flops"] == 3 * 2 * 4 * 3  # the product and its two gradients
    assert found["averaged flops"] == [
        None,
        ["Averaged"],
    ]  # unknown, and no reason to lose a trained model
    assert found["reached"] == [False]


def test_any_number_of_workers_computes_the_same(answers):
    """Two epochs with uneven last batches, dropout, clipping, a changing rate and synchronised statistics."""
    found = {
        name: value
        for name, value in answers["workers"].items()
        if not name.startswith("mixed")
    }
    assert len(found) == 8
    assert max(found.values()) < ROUNDING, found


def test_mixed_precision_is_near_and_another(answers):
    for name, most in (("mixed_bfloat16", 0.05), ("mixed_float16", 0.02)):
        assert 0 < max(answers["workers"][name]) < most, name


def test_gradients_reach_max_pooling_in_the_layout_of_its_inputs(answers):
    assert answers["layouts"] == [True]


def test_running_statistics_are_pytorch_s_own_weighted_by_the_workers_rows(answers):
    found = answers["statistics"]
    for momentum in (0.2, None):
        assert found[f"running_mean {momentum}"] < 1e-6
        assert found[f"running_var {momentum}"] < 1e-6
        assert found[f"tracked {momentum}"] == [1, 1]


def test_a_run_goes_on_from_its_values_bit_for_bit(answers):
    assert answers["resumed"] == 0


def test_parts_that_are_frozen_keep_weights_and_statistics(answers):
    first, second = answers["frozen"]["moved"]
    assert first == LEARNT
    assert set(second) == {*OF_PRETRAINED, *LEARNT, *STATISTICS}


def test_layers_of_a_keras_model_that_are_frozen_keep_weights_and_statistics(answers):
    first, second = answers["frozen_layers"]["moved"]
    assert set(first) == {"5.kernel", "5.bias"}
    assert set(second) == set(answers["frozen_layers"]["names"])


def test_callbacks_set_rates_end_the_run_and_put_weights_back(answers):
    assert answers["called"]["rates"] == pytest.approx([0.04, 0.02])
    assert answers["called"]["best"] == 0


def test_what_is_exported_gives_what_the_model_gives(answers):
    assert max(answers["exported"].values()) < 1e-6


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """The folder of a study of the example on two workers."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(
        f'task = "{PROJECT / "examples" / "torch_digits.py"}"\n'
        "[sweep]\nworkers = [2]\nseed = [0]\n"
        '[train]\nepochs = 4\nbatch = "global"\n'
    )
    done = scalestudy(folder, "run", "study.toml", "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def scalestudy(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scalestudy", *words]
    variables = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_example_is_tried_trained_evaluated_and_exported(study):
    (run,) = (study / "out" / "points").glob("*/run-1")
    result = json.loads((run / "result.json").read_text())
    assert (run.parent.name, result["metric"]) == ("ddp-w2-s0", "accuracy")
    assert result["quality"] > 0.8
    assert {"model.pt", "best.pt"} <= {file.name for file in run.iterdir()}
    evaluated = scalestudy(study, "model", "evaluate", "out", "--format", "json")
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["results"]["accuracy"] == pytest.approx(
        result["quality"], abs=1e-6
    )
    exported = scalestudy(study, "model", "export", "out", "--out", "digits.pt2")
    assert exported.returncode == 0, exported.stderr
    assert (study / "digits.pt2").stat().st_size > 1000


def test_a_group_connects_on_the_gpu_of_its_process_and_waits_without_a_busy_core(
    answers,
):
    assert answers["devices"]["group"] == ["cuda:0", "None"]
    assert answers["devices"]["event"] == {"enable_timing": True, "blocking": True}
