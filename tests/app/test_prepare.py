"""Data before a run: prepared or found once, skipped files listed, results kept outside the data set."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from recording_listener import RecordingListener
from scalestudy.app.follow import Listener
from scalestudy.app.plan import plan_study, request_of
from scalestudy.app.prepare import prepare_ahead, prepare_points
from scalestudy.app.run_study import dry_run
from scalestudy.config.settings import LaunchSettings
from scalestudy.util.errors import UserError

TEXT = 'task = "cnn"\n[data]\nsource = "{source}"\ncache = "cache"\n[sweep]\nworkers = 1\nseed = [0, 1]\n'
LEFT_OUT = ["set: 1 left out (images of no sample): stray.png"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of a folder with two classes and an image that belongs to neither."""
    for name in ("set/a/0", "set/a/1", "set/b/0", "set/b/1", "set/stray"):
        file = tmp_path / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(file)
    file = tmp_path / "study.toml"
    file.write_text(TEXT.format(source="set") + "[train]\nbatch_size = 1\n")
    return file


def test_what_is_left_out_is_told_when_preparing_and_when_found_again(
    study: Path,
) -> None:
    request = request_of(study)
    result = plan_study(request)
    for take, times in ((prepare_points, 1), (prepare_points, 1), (prepare_ahead, 0)):
        listener = RecordingListener()
        points = take(result.points, "classes", request.base, request.study, listener)
        assert listener.notes == LEFT_OUT
        assert listener.tasks.count("Preparing set") == times
        assert len(points) == 2 and len({point.files for point in points}) == 1


def test_classes_without_a_training_sample_are_told(study: Path) -> None:
    for number in range(8):
        (study.parent / "set" / f"c{number}").mkdir()
        Image.new("L", (8, 8)).save(study.parent / "set" / f"c{number}" / "0.png")
    study.write_text(study.read_text().replace("[sweep]", "validation = 0.5\n[sweep]"))
    request, listener = request_of(study), RecordingListener()
    prepare_points(
        plan_study(request).points, "classes", request.base, request.study, listener
    )
    assert "no training sample of 4 of 10 classes" in listener.notes[1]


def test_a_dry_run_tells_it_writes_nothing_and_refuses_what_a_run_would_refuse(
    study: Path,
) -> None:
    listener = RecordingListener()
    assert list(dry_run(request_of(study), listener=listener))
    assert listener.notes == LEFT_OUT
    assert {entry.name for entry in study.parent.iterdir()} == {"set", "study.toml"}
    (study.parent / "set" / "images").mkdir()
    (study.parent / "set" / "stray.png").rename(
        study.parent / "set" / "images" / "0.png"
    )
    with pytest.raises(UserError, match="a folder with images/ and masks/"):
        list(dry_run(request_of(study)))


def test_a_dry_run_refuses_a_batch_beyond_the_samples_that_are_prepared(
    study: Path,
) -> None:
    request = request_of(study)
    prepare_points(
        plan_study(request).points, "classes", request.base, request.study, Listener()
    )
    assert list(dry_run(request_of(study)))
    study.write_text(study.read_text().replace("batch_size = 1", "batch_size = 4096"))
    with pytest.raises(UserError, match="4096"):
        list(dry_run(request_of(study)))


def test_a_dry_run_for_a_queue_tells_it_before_the_data_are_prepared_too(
    study: Path,
) -> None:
    request, listener = request_of(study), RecordingListener()
    result = plan_study(request)
    result = replace(result, launcher=SimpleNamespace(detached=True))
    assert set(result.dry_run_points(result.points, listener)) == {
        point.name for point in result.points
    }
    assert "not prepared yet" in listener.notes[0]
    assert listener.notes[1:] == LEFT_OUT


@pytest.mark.parametrize("out", ["set", "set/a/results", "linked/results"])
def test_results_inside_the_source_are_refused(study: Path, out: str) -> None:
    (study.parent / "linked").symlink_to(study.parent / "set")
    with pytest.raises(UserError, match="in the data set") as refused:
        plan_study(request_of(study, study.parent / out))
    assert "--out" in refused.value.action


def test_results_among_the_prepared_sets_are_refused(study: Path) -> None:
    request = request_of(study)
    (point, _) = prepare_points(
        plan_study(request).points, "classes", request.base, request.study, Listener()
    )
    for out in ("cache", f"{point.files.prepared}/results"):
        with pytest.raises(UserError, match="in the prepared data sets"):
            plan_study(request_of(study, study.parent / out))
    assert plan_study(request_of(study, study.parent / "cache" / "results")).points


def test_a_cache_inside_the_source_is_refused(study: Path) -> None:
    study.write_text(study.read_text().replace('"cache"', '"set/cache"'))
    with pytest.raises(UserError, match="a cache folder outside the source"):
        list(dry_run(request_of(study)))


def with_train(study: Path, lines: str) -> list:
    """Return the points of the study with these lines added to [train], after preparing its data."""
    study.write_text(study.read_text() + lines)
    request = request_of(study)
    return prepare_points(
        plan_study(request).points,
        "classes",
        request.base,
        request.study,
        RecordingListener(),
    )


def test_class_weights_are_known_once_the_data_is_prepared_and_make_no_other_point(
    study: Path,
) -> None:
    points = with_train(study, 'class_weights = "balanced"\n')
    files = {point.files for point in points}
    assert len(files) == 1 and files.pop().class_weights == (1.5, 0.75)
    assert [point.train.class_weights for point in points] == ["balanced", "balanced"]
    planned = plan_study(request_of(study)).points
    assert all(one.same_as(other) for one, other in zip(planned, points, strict=True))


@pytest.mark.parametrize(
    ("lines", "expected", "received"),
    [
        (
            "class_weights = [1, 2, 3]",
            "2 class weights, some above 0, one for each class",
            "[1.0, 2.0, 3.0] (study.toml, line 10)",
        ),
        (
            'class_weights = [1, 2]\nloss = "dice"',
            "a loss that takes class weights",
            "dice (study.toml, line 11)",
        ),
    ],
)
def test_what_does_not_fit_the_data_is_refused_before_anything_starts(
    study: Path, lines: str, expected: str, received: str
) -> None:
    with pytest.raises(UserError) as error:
        with_train(study, lines + "\n")
    assert error.value.expected.startswith(expected) and error.value.received.endswith(
        received
    )


@pytest.mark.slow
def test_a_reader_that_gives_nothing_is_ended_within_the_progress_timeout_of_the_study(
    tmp_path: Path,
) -> None:
    (tmp_path / "task.py").write_text(
        "kind = 'custom'\ndef read(data):\n    while True: pass\n"
    )
    file = tmp_path / "study.toml"
    file.write_text(
        'task = "task.py"\n[data]\nread = "task.py"\ncache = "cache"\n[sweep]\nworkers = 1\n'
        "[launch]\nprogress_timeout = 2\n"
    )
    request = request_of(file)
    began = time.monotonic()
    with pytest.raises(UserError) as caught:
        prepare_points(
            plan_study(request).points,
            "custom",
            request.base,
            request.study,
            Listener(),
        )
    assert (
        "line 3 (in read)" in caught.value.received and "2 s" in caught.value.expected
    )
    assert "progress_timeout" in caught.value.action
    assert time.monotonic() - began < LaunchSettings().progress_timeout
