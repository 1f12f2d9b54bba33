"""A study from Python: tables as data frames, figures as objects, errors raised, failures listed."""

import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import polars as pl
import pytest

import scalestudy
from recording_listener import RecordingListener
from scalestudy.util.errors import UserError

TEXT = (
    'task = "cnn"\n[train]\nbatch_size = 32\n[sweep]\nworkers = [1, 2]\nseed = [0, 1]\n'
)


@pytest.fixture
def study(write_study) -> Path:
    return write_study(TEXT)


@pytest.mark.slow
def test_a_study_gives_frames_figures_and_advice_and_prints_nothing(
    study: Path, launcher, capfd: pytest.CaptureFixture[str]
) -> None:
    result = scalestudy.run(study)
    assert isinstance(result.table, pl.DataFrame) and isinstance(
        result.runs, pl.DataFrame
    )
    assert result.table["workers"].to_list() == [1, 2]
    assert result.table["speedup"].to_list() == pytest.approx([1.0, 2.0], rel=0.02)
    assert result.runs.height == 4 and set(result.runs["seed"]) == {0, 1}
    assert "speedup" in result.figures
    shown = result.figures["speedup"]._repr_mimebundle_()
    assert b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert any("vegalite" in kind for kind in shown)
    assert result.figures["speedup"].chart.to_dict()["title"]
    assert result.advice.headline
    assert result.failures == []
    assert result.folder == study.parent / "studies" / "study"
    assert (result.folder / "report" / "report.html").exists()
    assert "4 of 4 points done" in repr(result)
    opened = scalestudy.open(result.folder)
    assert opened.runs.height == 4
    assert opened.report() == result.folder / "report" / "report.html"
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_failed_point_raises_nothing_and_is_told(study: Path, launcher) -> None:
    launcher.fail = {"native-w2-s1"}
    result = scalestudy.run(study, out=study.parent / "elsewhere", report=False)
    assert [(entry.name, entry.reason) for entry in result.failures] == [
        ("native-w2-s1", "rank 1 ended with exit code 3")
    ]
    assert result.table["runs"].to_list() == [2, 1]
    assert not (result.folder / "report").exists()
    launcher.fail = set()
    again = scalestudy.run(study, out=study.parent / "elsewhere", report=False)
    assert again.failures == [] and again.runs.height == 4


def test_what_is_wrong_in_the_file_is_raised_as_it_is(study: Path, launcher) -> None:
    study.write_text(TEXT.replace("batch_size", "batchsize"))
    with pytest.raises(UserError, match="batch_size"):
        scalestudy.run(study)
    with pytest.raises(UserError, match=r"no study\.json"):
        scalestudy.open(study.parent)


def test_a_listener_hears_every_point_begin_and_end(study: Path, launcher) -> None:
    listener = RecordingListener()
    scalestudy.run(study, listener=listener, report=False)
    for name in ("native-w1-s0", "native-w1-s1", "native-w2-s0", "native-w2-s1"):
        assert listener.states.index((name, "running")) < listener.states.index(
            (name, "done")
        )


def test_a_bar_is_shown_where_one_is_asked_for(
    study: Path, launcher, capfd: pytest.CaptureFixture[str]
) -> None:
    scalestudy.run(study, progress=True, report=False)
    assert "4/4" in capfd.readouterr().out


def test_importing_the_package_loads_registries_only() -> None:
    program = "import sys, scalestudy; print(*(name for name in sys.modules if name.startswith('scalestudy.')))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert {name.split(".")[1] for name in done.stdout.split()} <= {"built_in", "util"}


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore:.*other programs used")  # other tests
def test_a_study_of_digits_really_runs(study: Path) -> None:
    study.write_text(
        'task = "cnn"\n[data]\nsource = "digits"\n[train]\nepochs = 1\n[sweep]\nworkers = 1\nseed = 0\n'
    )
    result = scalestudy.run(study)
    assert result.failures == []
    assert result.runs["quality"][0] > 0.2  # chance is 0.1
    assert result.runs["epochs"].to_list() == [1]
    (point,) = result.overview.points
    assert point.result.model_missing is None, (
        "the result was read before its model was there, and not again"
    )
    assert (point.run.path / "model.keras").exists()


def test_what_a_data_set_leaves_out_is_a_warning(study: Path, tmp_path: Path) -> None:
    import numpy as np

    arrays = {
        "x_train": np.zeros((8, 4, 4), np.uint8),
        "y_train": np.arange(8) % 2,
        "weights": np.ones(3),
    }
    np.savez(tmp_path / "set.npz", **arrays)
    study.write_text(TEXT + '[data]\nsource = "set.npz"\n')
    with (
        pytest.warns(
            UserWarning, match=r"set\.npz: 1 left out \(no arrays of a set\): weights"
        ) as warned,
        pytest.raises(UserError, match="a global batch within"),
    ):
        scalestudy.run(study)
    assert warned[0].filename == __file__
