from pathlib import Path

import pytest

from scalestudy.app.one_point import one_point_study, option_values
from scalestudy.launch.status import study_status
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError


def test_options_are_the_keys_of_a_study_file() -> None:
    arguments = ["--batch-size", "8", "--xla", "--no-deterministic", "--image-size", "64", "32"]
    assert option_values(
        [*arguments, "--optimizer=adam", "--learning-rate", "1e-3", "--validation", "given"]
    ) == {
        "train": {
            "batch_size": 8,
            "xla": True,
            "deterministic": False,
            "optimizer": "adam",
            "learning_rate": 1e-3,
        },
        "data": {"image_size": [64, 32], "validation": "given"},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epohcs", "3"], "--epochs"),
        (["--workerz", "3"], "--workers"),
        (["--on", "slurm"], "known option"),
        (["--image-size", "32,32"], "--image-size 32 32"),
        (["orphan"], "the argument orphan"),
    ],
)
def test_an_unknown_option_is_refused_with_a_suggestion(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        option_values(arguments)


def test_an_engine_is_named_beside_its_strategy() -> None:
    sweep = {"engine": "tensorflow", "strategy": "native", "workers": 2, "seed": 0}
    study = one_point_study("cnn", "indents:40", sweep, {})
    assert (study.name, study.engine, study.sweep.strategy) == ("cnn-native-w2", ("tensorflow",), ("native",))
    with pytest.raises(UserError, match="engine"):
        one_point_study("cnn", "indents:40", sweep | {"engine": "tensorflaw"}, {})


def test_one_run_needs_no_study_file(call, study: Path, launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study.parent)
    arguments = ["--task", "cnn", "--strategy", "horovod", "--workers", "2", "--epochs", "3", "--seed", "5"]
    code, text, _ = call("train", *arguments, "--no-report")
    assert code == 0
    assert launcher.ran == ["horovod-w2-s5"]
    assert launcher.points[0].train.epochs == 3
    assert "[1/1] horovod-w2-s5 done" in text
    assert study_status(StudyFolder.open(study.parent / "studies" / "cnn-horovod-w2")).states == {
        "horovod-w2-s5": "done"
    }


def test_wrong_options_end_with_2_and_write_nothing(
    call, study: Path, launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study.parent)
    for arguments, message in (
        (["--task", "uent"], 'Did you mean "unet"?'),
        (["--strategy", "horovodd"], 'Did you mean "horovod"?'),
        (["--workers", "0"], "--workers"),
        (["--batch-size", "1" + "0" * 5000], "for train.batch_size"),
        (["--strategy", "single", "--workers", "2"], "always has one worker"),
        (["--data", "no/where"], "does not exist"),
    ):
        code, _, errors = call("train", *arguments)
        assert code == 2
        assert message in errors
    assert not (study.parent / "studies").exists()
