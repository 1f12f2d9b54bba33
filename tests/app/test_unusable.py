"""Settings that cannot work are refused by key and line before anything is prepared or started."""

from pathlib import Path

import pytest

from scalestudy.app.unusable import refuse_unusable
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
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
    study = parse_study(STUDY.format(task=task, line=line, cache=cache), base / "study.toml")
    (point, *_) = expand(study, gpus=0, cores=8)
    try:
        refuse_unusable(point, study, base, classes=classes)
    except UserError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("line", "classes"),
    [
        ('metrics = ["top_k(k=10)"]', 10),
        ('metrics = ["accuracy", "top_k"]', 5),
        ('loss = "bce"\nclass_weights = [0.0, 0.0]', None),
        ('loss = "bce"\nclass_weights = [1.0, 2.0]', 10),
        ('keep_best = "acuracy"', None),
        ('metrics = ["f1"]\nkeep_best = "accuracy"', None),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_its_line(tmp_path, line, classes):
    error = refused(tmp_path, line, classes=classes)
    assert error is not None and f"line {LINE + line.count(chr(10))})" in error.received


def test_weights_that_are_not_there_are_refused_by_their_line(tmp_path):
    error = refused(tmp_path, 'weights = "absent.h5"', task="resnet50")
    assert error is not None and f"line {LINE})" in error.received


@pytest.mark.parametrize(
    ("line", "task", "classes"),
    [
        ('metrics = ["top_k(k=9)"]', "cnn", 10),
        ('metrics = ["top_k(k=99)"]', "cnn", None),  # number of classes not yet known
        ('keep_best = "iou_crack"', "unet", 2),
        ('keep_best = "loss"', "cnn", None),
        ('loss = "bce"\nclass_weights = [0.0, 2.0]', "cnn", 2),
        ('weights = "imagenet"', "resnet50", None),
    ],
)
def test_what_can_work_is_not(tmp_path, line, task, classes):
    assert refused(tmp_path, line, task=task, classes=classes) is None


def test_a_cache_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for cache in ("file/cache", "/proc/cache"):
        error = refused(tmp_path, "", cache=cache)
        assert error is not None and str(Path(cache).name) in error.received
    assert refused(tmp_path, "", cache="new/cache") is None
