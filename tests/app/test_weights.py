"""Errors found by building a model before the first run."""

import pytest

from data_settings import data_of
from scalestudy.app.listener import Listener
from scalestudy.app.run import dry_run
from scalestudy.app.survey import request_of
from scalestudy.app.weights import fetch_weights
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.data.store.preparation import prepare
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine


def test_frozen_epochs_of_a_task_without_pretrained_layers_are_refused_before_the_start(tmp_path):
    prepared = prepare(data_of("digits", cache=tmp_path))
    text = 'task = "cnn"\n[train]\nepochs = 2\nfrozen_epochs = 1\n[sweep]\nworkers = 1\nseed = 0\n'
    (point,) = expand(parse_study(text, tmp_path / "study.toml"), gpus=0, cores=1)
    with pytest.raises(UserError, match="a task with pretrained layers"):
        fetch_weights(point, str(prepared.path), Listener())


@pytest.mark.parametrize(
    ("lines", "named"),
    [("metrics = ['accuracy']", "`loss`"), ("loss, metrics = 'mse', ['accurcy']", "accurcy")],
)
def test_a_dry_run_imports_a_task_file_and_refuses_what_it_lacks_or_misspells(tmp_path, lines, named):
    (tmp_path / "own.py").write_text(f"import keras\n{lines}\ndef model(data):\n    raise AssertionError\n")
    file = tmp_path / "study.toml"
    file.write_text('task = "own.py"\n[data]\nsource = "digits"\ncache = "cache"\n[sweep]\nworkers = 1\n')
    with pytest.raises(UserError) as refused:
        list(dry_run(request_of(file)))
    assert named in f"{refused.value.expected} {refused.value.received}"
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"own.py", "study.toml"}
