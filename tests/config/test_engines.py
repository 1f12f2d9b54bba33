"""Which engine computes a study: its strategies tell, and its task file may need one."""

from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.file import Study
from scalestudy.config.parse import parse_study
from scalestudy.util.errors import UserError


def study(task: str, sweep: str = "", file: Path = Path("study.toml")) -> Study:
    return parse_study(f'task = "{task}"\n[sweep]\n{sweep}\n', file)


@pytest.mark.parametrize(
    ("task", "strategy"), [("cnn", "native"), ("torch_cnn", "ddp")]
)
def test_without_strategies_the_own_way_of_the_tasks_engine_is_swept(task, strategy):
    assert study(task).sweep.strategy == (strategy,)


def test_strategies_of_several_engines_are_swept_together():
    swept = study(
        "cnn",
        'strategy = ["native", "ddp", "torch-single"]\nworkers = [1, 2]\nseed = 0',
    )
    assert [(point.engine, point.name) for point in expand(swept, gpus=0, cores=4)] == [
        ("tensorflow", "native-w1-s0"),
        ("tensorflow", "native-w2-s0"),
        ("torch", "ddp-w1-s0"),
        ("torch", "ddp-w2-s0"),
        ("torch", "torch-single-w1-s0"),
    ]


def test_a_strategy_of_another_engine_is_refused_for_a_task_that_needs_one():
    with pytest.raises(UserError) as refused:
        study("torch_cnn", 'strategy = ["ddp", "horovod"]')
    assert refused.value.received == '"horovod" (study.toml, line 3)'
    assert "ddp, torch-single, torch-virtual" in refused.value.expected


def test_a_study_that_was_stored_with_keys_of_an_earlier_version_is_read():
    stored = study("cnn").model_dump(mode="json")
    assert Study.model_validate(
        stored | {"engine": ["tensorflow"], "indifference_zone": 0.05}
    ) == study("cnn")


def test_a_task_file_names_an_engine_that_there_is(tmp_path):
    (tmp_path / "own.py").write_text('engine = "tensorflaw"\n')
    with pytest.raises(UserError) as caught:
        study("own.py", file=tmp_path / "study.toml")
    assert "tensorflaw" in caught.value.received


def test_a_task_file_that_imports_pytorch_alone_is_of_its_engine_unless_it_names_another(
    tmp_path,
):
    task, file = tmp_path / "own.py", tmp_path / "study.toml"
    task.write_text("from torch import nn\n")
    assert study("own.py", file=file).sweep.strategy == ("ddp",)
    with pytest.raises(UserError) as refused:
        study("own.py", 'strategy = "mirrored"', file)
    assert (
        "study.toml, line 3" in refused.value.received
        and 'engine = "tensorflow"' in refused.value.action
    )
    task.write_text('from torch import nn\nengine = "tensorflow"\n')
    assert study("own.py", 'strategy = "mirrored"', file).sweep.strategy == (
        "mirrored",
    )


def test_a_task_file_that_imports_two_engines_is_asked_which_unless_something_says_it(
    tmp_path,
):
    task, file = tmp_path / "own.py", tmp_path / "study.toml"
    task.write_text("import keras\nimport torch\n")
    with pytest.raises(UserError) as refused:
        study("own.py", file=file)
    assert "study.toml, line 1" in refused.value.received
    assert all(
        f'engine = "{name}"' in refused.value.action for name in ("tensorflow", "torch")
    )
    assert study("own.py", 'strategy = "ddp"', file).sweep.strategy == ("ddp",)
    for name, strategy in (("tensorflow", "native"), ("torch", "ddp")):
        task.write_text(f'import keras\nimport torch\nengine = "{name}"\n')
        assert study("own.py", file=file).sweep.strategy == (strategy,)
