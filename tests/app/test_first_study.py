"""The study file that `scalestudy init` writes fits the machine."""

from pathlib import Path

import pytest

from scalestudy.app import first_study as module
from scalestudy.app.first_study import first_study
from scalestudy.study.expand import expand
from scalestudy.study.file import Study
from scalestudy.study.parse import parse_study


@pytest.fixture(autouse=True)
def with_horovod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_installed_strategies", lambda engine: ["horovod"])


def read(task: str | None = None, **machine: int) -> Study:
    return parse_study(first_study(task, **machine).text, Path("study.toml"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "cores", "strategies", "workers"),
    [
        (0, 1, ("native",), (1,)),
        (0, 2, ("native", "horovod"), (1, 2)),
        (0, 7, ("native", "horovod"), (1, 2, 4)),
        (4, 96, ("native", "horovod"), (1, 2, 4)),
        (0, 96, ("native", "horovod"), (1, 2, 4, 8)),
        (1, 16, ("native",), (1,)),
    ],
)
def test_no_point_is_oversubscribed_or_impossible(gpus, cores, strategies, workers) -> None:
    study = read(gpus=gpus, cores=cores)
    assert (study.sweep.strategy, study.sweep.workers) == (strategies, workers)
    points = expand(study, gpus=gpus, cores=cores)
    assert all(point.oversubscribed is None for point in points)
    assert len({point.global_batch for point in points}) == 1
    assert f"{len(points)} points on" in first_study(None, gpus=gpus, cores=cores).summary


def test_a_task_of_ones_own_keeps_its_data(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('data = "digits"\ntrain = {"epochs": 3}\n')
    study = first_study(str(tmp_path / "mine.py"), gpus=0, cores=2)
    read_back = parse_study(study.text, Path("study.toml"))
    assert (read_back.data.source, read_back.train.epochs) == (None, None)


def test_it_is_of_the_engine_that_is_installed(monkeypatch) -> None:
    monkeypatch.setattr(module, "installed_engine", lambda: "torch")
    monkeypatch.setattr(module, "_installed_strategies", lambda engine: [])
    study = read(gpus=0, cores=2)
    assert (study.engine, study.sweep.strategy) == (("torch",), ("ddp",))
    assert parse_study(first_study(None, gpus=0, cores=2).text, Path("s.toml")).engine == ("torch",)
