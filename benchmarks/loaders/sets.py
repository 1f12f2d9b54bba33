"""The data sets: files as users have them, and the same prepared by us."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from scalestudy.config.settings import DataSettings
from scalestudy.data.preparation import prepare

Array = Any


class Case(NamedTuple):
    """A data set and how it is read.

    Attributes:
        batch: Per-worker batch.
        size: Height and width to which images are resized; None for their own.
        loaders: Loaders to compare, ours first.
    """

    batch: int
    size: tuple[int, int] | None
    loaders: tuple[str, ...]


CACHED = ("ours", "tf.data", "Grain", "PyTorch")
CASES = {
    "mnist": Case(512, None, CACHED),
    "nuclei": Case(16, None, CACHED),
    "flowers": Case(32, (224, 224), CACHED),
}
"""Each loader reads them in its usual way: ours prepared once, tf.data cached, the others decoding PNG and
JPEG in each epoch."""


TIMES = 2
"""Copies of each image: with 300 images per epoch, the start of an epoch would dominate."""


def source(name: str, data: Path | None, folder: Path) -> Path:
    """Path of the set: in `data` (mnist/mnist.npz), or in `folder`, copied from `data` or generated."""
    place = {"mnist": Path("mnist", "mnist.npz")}.get(name, Path(name))
    own = None if data is None else data / place
    if own is not None and own.is_file():
        return own
    made = folder / place
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        if own is not None and own.exists():
            _repeated(own, made)
        else:
            {"mnist": _digits, "nuclei": _masked, "flowers": _photographs}[name](made)
    return made


def _repeated(folder: Path, into: Path) -> None:
    for file in folder.rglob("*.*"):
        for time in range(TIMES):
            copy = into / file.parent.relative_to(folder) / f"{time}-{file.name}"
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())


def prepared(where: Path, case: Case, cache: Path) -> Path:
    settings = DataSettings(source=str(where), image_size=case.size, cache=str(cache))
    return prepare(settings).path


def listed(where: Path, file: Path) -> int:
    """Write the rows [image, target] of a folder to `file`, in our order, and return their number."""
    if (where / "images").is_dir():
        rows = [
            (str(image), str(where / "masks" / image.name))
            for image in sorted((where / "images").iterdir())
        ]
    else:
        classes = sorted(entry for entry in where.iterdir() if entry.is_dir())
        rows = [
            (str(image), str(i))
            for i, entry in enumerate(classes)
            for image in sorted(entry.iterdir())
        ]
    file.write_text(json.dumps(rows))
    return len(rows)


def _digits(file: Path) -> None:
    draw = np.random.default_rng(0)
    np.savez_compressed(
        file,
        x_train=draw.integers(0, 256, (60_000, 28, 28), np.uint8),
        y_train=np.arange(60_000) % 10,
    )


def _masked(folder: Path) -> None:
    from scalestudy.data.sources.micrograph import make_micrograph

    for index in range(TIMES * 334):
        for name, pixels in zip(
            ("images", "masks"), make_micrograph(0, index, (256, 256)), strict=True
        ):
            (folder / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels * (255 if name == "masks" else 1)).save(
                folder / name / f"{index:04}.png"
            )


def _photographs(folder: Path) -> None:
    from scalestudy.data.sources.micrograph import make_micrograph

    for index in range(TIMES * 300):
        (folder / f"class{index % 5}").mkdir(parents=True, exist_ok=True)
        colours = np.stack(
            [make_micrograph(channel, index, (333, 500))[0] for channel in range(3)], -1
        )
        Image.fromarray(colours).save(
            folder / f"class{index % 5}" / f"{index:04}.jpg", quality=90
        )


def files_of(listing: Path) -> list[Path]:
    """The files that a list of rows names."""
    rows = json.loads(listing.read_text())
    return [Path(each) for row in rows for each in row if not each.isdecimal()]
