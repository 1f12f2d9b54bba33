"""Event files written by Keras 3.15's callback and TensorFlow 1's FileWriter."""

import importlib.util
from pathlib import Path

import pytest

from scalestudy.features.imported.gather import gather
from scalestudy.util.errors import UserError

FILES = Path(__file__).parent / "files"
needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed (its extra)"
)


@needs_tensorboard
@pytest.mark.parametrize("path", ["run-4gpus", "run-4gpus/train", "run-4gpus/validation/*"])
def test_event_files_of_keras_say_what_its_csv_log_does(path: str):
    (run,) = gather([str(FILES / path)]).runs
    logged = gather([str(FILES / "keras_4.csv")]).runs[0]
    assert (run.result.workers, run.result.metric) == (4, "accuracy")
    assert run.result.quality == pytest.approx(logged.result.quality, rel=1e-6)
    for ours, theirs in zip(run.epochs, logged.epochs, strict=True):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-6)
        assert ours.validation == pytest.approx(theirs.validation, rel=1e-6)
    assert run.epochs[0].train_seconds is None
    assert all(epoch.train_seconds and epoch.train_seconds > 0 for epoch in run.epochs[1:])


@needs_tensorboard
def test_simple_values_of_old_event_files_are_read():
    run = gather([str(FILES / "old-2gpus")]).runs[0]
    assert [epoch.loss for epoch in run.epochs] == pytest.approx([1.0, 0.9, 0.8])
    assert run.result.quality == pytest.approx(0.7)


@needs_tensorboard
def test_a_file_without_scalars_is_refused(tmp_path: Path):
    path = tmp_path / "w2" / "events.out.tfevents.1.node01"
    path.parent.mkdir()
    path.write_bytes(b"\0" * 50)
    with pytest.raises(UserError, match="whose tags are none"):
        gather([str(path)])


def test_without_its_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "tensorboard" else find(name, *rest)
    )
    with pytest.raises(UserError) as refused:
        gather([str(FILES)])
    assert "pip install tensorboard" in refused.value.action
