"""Settings that cannot work are refused by key and line before anything is prepared or started."""

from pathlib import Path

import pytest
from PIL import Image

from data_settings import data_of
from recording_listener import RecordingListener
from scalestudy.app.follow import Listener
from scalestudy.app.plan import request_of
from scalestudy.app.run_study import dry_run
from scalestudy.app.task_checks import fetch_weights, known_classes, refuse_unusable
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.data.preparation import prepare
from scalestudy.util.errors import UserError

STUDY = """task = "{task}"
[data]
source = "digits"
cache = "{cache}"
[sweep]
strategy = ["single"]
workers = [1]
[train]
epochs = 1
{line}
"""
LINE = 10


def refused(base, line, *, task="cnn", classes=None, cache="cache") -> UserError | None:
    study = parse_study(
        STUDY.format(task=task, line=line, cache=cache), base / "study.toml"
    )
    (point, *_) = expand(study, gpus=0, cores=8)
    try:
        refuse_unusable(point, study, base, classes=classes)
    except UserError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("line", "task", "classes", "wrong"),
    [
        ('metrics = ["top_k(k=10)"]', "cnn", 10, True),
        ('metrics = ["accuracy", "top_k"]', "cnn", 5, True),
        ('loss = "bce"\nclass_weights = [0.0, 0.0]', "cnn", None, True),
        ('loss = "bce"\nclass_weights = [1.0, 2.0]', "cnn", 10, True),
        ('weights = "absent.h5"', "resnet50", None, True),
        ('metrics = ["top_k(k=9)"]', "cnn", 10, False),
        (
            'metrics = ["top_k(k=99)"]',
            "cnn",
            None,
            False,
        ),  # number of classes not yet known
        ('loss = "bce"\nclass_weights = [0.0, 2.0]', "cnn", 2, False),
        ('weights = "imagenet"', "resnet50", None, False),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_its_line(
    tmp_path, line, task, classes, wrong
):
    error = refused(tmp_path, line, task=task, classes=classes)
    assert (error is not None) is wrong
    assert error is None or f"line {LINE + line.count(chr(10))})" in error.received


def test_a_cache_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for cache in ("file/cache", "/proc/cache"):
        error = refused(tmp_path, "", cache=cache)
        assert error is not None and str(Path(cache).name) in error.received
    assert refused(tmp_path, "", cache="new/cache") is None


@pytest.mark.engine
def test_frozen_epochs_of_a_task_without_pretrained_layers_are_refused_before_the_start(
    tmp_path,
):
    prepared = prepare(data_of("digits", cache=tmp_path))
    text = 'task = "cnn"\n[train]\nepochs = 2\nfrozen_epochs = 1\n[sweep]\nworkers = 1\nseed = 0\n'
    (point,) = expand(parse_study(text, tmp_path / "study.toml"), gpus=0, cores=1)
    with pytest.raises(UserError, match="a task with pretrained layers"):
        fetch_weights(point, str(prepared.path), Listener())


@pytest.mark.engine
@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("metrics = ['accuracy']", "`loss`"),
        ("loss, metrics = 'mse', ['accurcy']", "accurcy"),
    ],
)
def test_a_dry_run_imports_a_task_file_and_refuses_what_it_lacks_or_misspells(
    tmp_path, lines, named
):
    (tmp_path / "own.py").write_text(
        f"import keras\n{lines}\ndef model(data):\n    raise AssertionError\n"
    )
    file = tmp_path / "study.toml"
    file.write_text(
        'task = "own.py"\n[data]\nsource = "digits"\ncache = "cache"\n[sweep]\nworkers = 1\n'
    )
    with pytest.raises(UserError) as refused:
        list(dry_run(request_of(file)))
    assert named in f"{refused.value.expected} {refused.value.received}"
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {
        "own.py",
        "study.toml",
    }


@pytest.mark.parametrize(("source", "classes"), [("digits", 10), ("indents:4", 2)])
def test_the_classes_for_class_weights_are_known_before_data_are_prepared(
    tmp_path, source, classes
):
    text = STUDY.format(task="cnn", line="class_weights = [1, 2, 3]", cache="cache")
    study = parse_study(
        text.replace('"digits"', f'"{source}"'), tmp_path / "study.toml"
    )
    (point, *_) = expand(study, gpus=0, cores=8)
    assert known_classes(point, None, tmp_path) == classes
    assert not (tmp_path / "cache").exists()


def test_a_dry_run_says_that_class_weights_of_masks_are_checked_once_these_are_read(
    tmp_path,
):
    for number in range(4):
        for folder, mode in (("images", "RGB"), ("masks", "L")):
            (tmp_path / "set" / folder).mkdir(parents=True, exist_ok=True)
            Image.new(mode, (16, 16)).save(tmp_path / "set" / folder / f"{number}.png")
    text = STUDY.format(
        task="unet", line="class_weights = [1, 2, 3]\nbatch_size = 1", cache="cache"
    )
    file, listener = tmp_path / "study.toml", RecordingListener()
    file.write_text(text.replace('"digits"', '"set"'))
    assert list(dry_run(request_of(file), listener=listener))
    assert any(
        "class_weights" in note and "not prepared" in note for note in listener.notes
    )
    file.write_text(
        text.replace('"digits"', '"set"').replace("class_weights = [1, 2, 3]", "")
    )
    listener = RecordingListener()
    assert list(dry_run(request_of(file), listener=listener))
    assert not any("class_weights" in note for note in listener.notes)


def test_without_class_weights_no_source_is_searched(tmp_path):
    study = parse_study(
        STUDY.format(task="cnn", line="", cache="cache"), tmp_path / "study.toml"
    )
    (point, *_) = expand(study, gpus=0, cores=8)
    assert known_classes(point, None, tmp_path) is None
