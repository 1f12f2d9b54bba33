"""The study file that `scalestudy init` writes is short, and fits the machine."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalestudy.app import small_studies as module
from scalestudy.app.small_studies import first_study
from scalestudy.config.expand import expand
from scalestudy.config.file import Study
from scalestudy.config.parse import parse_study
from scalestudy.util.errors import UserError


def read(task: str | None = None, source: str | None = None, **machine: int) -> Study:
    return parse_study(first_study(task, source, **machine).text, Path("study.toml"))


@pytest.mark.parametrize(
    ("gpus", "cores", "workers"),
    [
        (0, 1, (1,)),
        (0, 2, (1, 2)),
        (0, 7, (1, 2, 4)),
        (4, 96, (1, 2, 4)),
        (0, 96, (1, 2, 4, 8)),
        (1, 16, (1,)),
    ],
)
def test_no_point_is_oversubscribed_or_impossible(gpus, cores, workers) -> None:
    study = read(gpus=gpus, cores=cores)
    assert study.sweep.workers == workers
    points = expand(study, gpus=gpus, cores=cores)
    assert all(point.oversubscribed is None for point in points)
    assert len({point.global_batch for point in points}) == 1
    assert (
        f"{len(points)} points on" in first_study(None, gpus=gpus, cores=cores).summary
    )


@pytest.mark.parametrize("task", [None, "resnet50"])
def test_it_has_at_most_thirty_lines(task) -> None:
    assert len(first_study(task, gpus=0, cores=2).text.splitlines()) <= 30


def test_a_task_of_ones_own_keeps_its_data(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('data = "digits"\ntrain = {"epochs": 3}\n')
    study = read(str(tmp_path / "mine.py"), gpus=0, cores=2)
    assert (study.data.source, study.train.epochs) == (None, None)


def test_it_is_of_the_engine_that_is_installed(monkeypatch) -> None:
    monkeypatch.setattr(module, "installed_engine", lambda: "torch")
    study = read(gpus=0, cores=2)
    assert study.sweep.strategy == ("ddp",)


@pytest.mark.parametrize(
    ("folders", "task"), [(("SEM", "labels"), "unet"), (("cats", "dogs"), "cnn")]
)
def test_its_task_suits_the_data(
    tmp_path: Path, folders: tuple[str, str], task: str
) -> None:
    for first, folder in enumerate(folders):
        (tmp_path / folder).mkdir()
        for image in range(4):
            pixels = np.random.default_rng(image).integers(
                0, 2 if folder == "labels" else 255, (8, 8)
            )
            name = image if task == "unet" else 4 * first + image
            Image.fromarray(pixels.astype("uint8")).save(
                tmp_path / folder / f"{name}.png"
            )
    study = read(None, str(tmp_path), gpus=0, cores=2)
    assert (study.task, study.data.source) == (task, str(tmp_path))


@pytest.mark.parametrize(
    ("side", "written"), [(28, (28, 28)), (64, (64, 64)), (300, (64, 64))]
)
def test_small_images_are_not_enlarged(
    tmp_path: Path, side: int, written: tuple[int, int]
) -> None:
    images = np.zeros((4, side, side), np.uint8)
    np.savez(tmp_path / "set.npz", x_train=images, y_train=np.array([0, 1, 0, 1]))
    assert (
        read(None, str(tmp_path / "set.npz"), gpus=0, cores=2).data.image_size
        == written
    )


def test_data_that_are_missing_or_read_by_code_have_no_first_study(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text("def read(data):\n    yield 1, 2\n")
    for source in ("absent", str(tmp_path / "mine.py")):
        with pytest.raises(UserError):
            first_study(None, source, gpus=0, cores=2)
