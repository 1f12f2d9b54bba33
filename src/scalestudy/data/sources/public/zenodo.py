"""The public set "indents@zenodo", an archive of images and masks."""

import shutil
import tarfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from scalestudy.data.images.decode import read_mask
from scalestudy.data.sources.files import shown_entries
from scalestudy.data.sources.layouts.index import images_below
from scalestudy.data.sources.layouts.pairs import matched
from scalestudy.data.sources.public.base import SET, About, Public, Recipe
from scalestudy.data.sources.public.download import Downloading, RemoteFile, fetch
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

ZENODO_INDENTS = RemoteFile(
    "https://zenodo.org/records/7639190/files/masks.tar.gz", "md5:047f601bdd2b5526fa8c50ea1b4c5f52"
)
"""1,120 electron micrographs of indents with masks, doi:10.5281/zenodo.7639190, CC BY 4.0."""


def zenodo_indents(argument: str | None, data: DataSettings) -> Public:
    """The source "indents@zenodo"."""
    if argument is not None:
        raise UserError('"indents@zenodo" alone', f'"indents@zenodo:{argument}"', 'Write "indents@zenodo".')
    make = partial(_indents, ZENODO_INDENTS)
    recipe = Recipe("indents-zenodo", "indents@zenodo", "masks", f"1 {ZENODO_INDENTS.hash}", make)
    return Public(recipe, data)


def _indents(file: RemoteFile, folder: Path, store: Path, downloading: Downloading) -> About:
    """Images and masks, paired by name: a folder is of masks if "mask" or "label" is in its own name.

    Masks that were smoothed are cut at half of full scale.
    """
    unpacked = store / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)  # of an earlier attempt
    _unpack(fetch(file, store, downloading), unpacked)

    def name_of(path: Path) -> str:
        return "-".join((*path.relative_to(unpacked).parts[:-2], path.stem))

    def is_mask(path: Path) -> bool:
        # The archive itself is called masks: only the last folder tells.
        folder = path.parent.name.lower() if path.parent != unpacked else ""
        return "mask" in folder or "label" in folder

    files = images_below(unpacked)
    masks = [path for path in files if is_mask(path)]
    images = [path for path in files if not is_mask(path)]
    if not images or not masks:
        raise UserError(
            "folders of images and of masks whose files pair by name",
            f"{len(images)} images and {len(masks)} masks in {shown_entries(unpacked)}",
            "Unpack the archive yourself into images/ and masks/, and name that folder as the source.",
        )
    pairs, _ = matched(images, masks, name_of)
    for name in ("images", "masks"):
        (folder / SET / name).mkdir(parents=True)
    for image, mask in pairs:
        image.rename(folder / SET / "images" / f"{name_of(image)}{image.suffix.lower()}")
        values = read_mask(mask)
        if not set(np.unique(values).tolist()) <= {0, 1}:
            values = np.where(values > 127, 255, 0)
        Image.fromarray(values.astype(np.uint8)).save(folder / SET / "masks" / f"{name_of(image)}.png")
    return About()


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a .tar (compressed or not) into a new folder, and nothing outside it.

    Raises:
        UserError: the archive is damaged, or holds what leads out of the folder.
        OSError: the folder cannot take it.
    """
    folder.mkdir()
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # Without a number it is what gzip raises of damaged streams.
        raise UserError(
            "an archive that can be unpacked", f"{archive}: {error}", "Delete it and run again."
        ) from error
