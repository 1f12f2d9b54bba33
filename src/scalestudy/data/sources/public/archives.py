"""Public sets that are an archive of images: "cassava", and "indents@zenodo"."""

import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from scalestudy.data.images.decode import read_mask
from scalestudy.data.images.suffixes import READ
from scalestudy.data.sources.files import is_system, shown_entries
from scalestudy.data.sources.public.base import SET, About, Public, Recipe
from scalestudy.data.sources.public.download import Downloading, RemoteFile, fetch
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

CASSAVA = RemoteFile(
    "https://storage.googleapis.com/emcassavadata/cassavaleafdata.zip",
    "sha256:8ae63d2ef7dee0899d252a748523e603f97e2ae7022f103f92fc42a9fce74d95",
    1_354_096_203,
)
"""E. Mwebaze et al., iCassava 2019; 5,656, 1,889 and 1,885 photographs of leaves in five classes."""
ZENODO_INDENTS = RemoteFile(
    "https://zenodo.org/records/7639190/files/masks.tar.gz", "md5:047f601bdd2b5526fa8c50ea1b4c5f52"
)
"""1,120 electron micrographs of indents with masks, doi:10.5281/zenodo.7639190, CC BY 4.0."""


def cassava(argument: str | None, data: DataSettings) -> Public:
    """The source "cassava": the published split, without TensorFlow Datasets."""
    _refuse_argument("cassava", argument)
    make = partial(_cassava, CASSAVA)
    return Public(Recipe("cassava", "cassava", "classes", CASSAVA.hash, make), data)


def zenodo_indents(argument: str | None, data: DataSettings) -> Public:
    """The source "indents@zenodo"."""
    _refuse_argument("indents@zenodo", argument)
    make = partial(_indents, ZENODO_INDENTS)
    recipe = Recipe("indents-zenodo", "indents@zenodo", "masks", f"1 {ZENODO_INDENTS.hash}", make)
    return Public(recipe, data)


def _cassava(file: RemoteFile, folder: Path, store: Path, downloading: Downloading) -> About:
    archive = fetch(file, store, downloading)
    unpacked = folder / "unpacked"
    unpacked.mkdir()
    unpack(archive, unpacked)
    # Below one folder, cassavaleafdata/{train,validation,test}/CLASS/*.jpg.
    inside = [entry for entry in unpacked.iterdir() if not is_system(entry)]
    (inside[0] if len(inside) == 1 and inside[0].is_dir() else unpacked).rename(folder / SET)
    if unpacked.exists():
        unpacked.rmdir()
    return About()


def _indents(file: RemoteFile, folder: Path, store: Path, downloading: Downloading) -> About:
    archive = fetch(file, store, downloading)
    unpacked = store / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    unpack(archive, unpacked)
    images, masks = paired_folders(unpacked)
    for name, pairs in (("images", images), ("masks", masks)):
        (folder / SET / name).mkdir(parents=True)
        for stem, path in pairs.items():
            path.rename(folder / SET / name / f"{stem}{path.suffix.lower()}")
    for path in sorted((folder / SET / "masks").iterdir()):
        _make_binary(path)
    return About()


_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .zip or a .tar (compressed or not) into an empty folder.

    Raises:
        UserError: the archive is damaged, or holds what leads out of the folder.
        OSError: the folder cannot take it.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as pack:
                pack.extractall(folder)
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
    except _DAMAGED as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        if error.errno is None:  # what gzip and zlib raise of damaged streams
            raise _damaged(archive, error) from error
        raise


def _damaged(archive: Path, error: Exception) -> UserError:
    return UserError("an archive that can be unpacked", f"{archive}: {error}", "Delete it and run again.")


def paired_folders(root: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Images and their masks by name, wherever below `root` two folders pair.

    A folder is of masks if "mask" or "label" is in its name. Of the names of files "mask", "_mask" and the
    like do not count: `a.png` pairs with `a_mask.png`.

    Raises:
        UserError: there are none, or a folder of masks pairs with no folder of images or with several.
    """
    folders: dict[Path, list[Path]] = {}
    for path, _, names in os.walk(root):
        files = [Path(path, name) for name in sorted(names)]
        taken = [file for file in files if not is_system(file) and file.suffix.lower() in READ]
        if taken:
            folders[Path(path)] = taken
    images: dict[str, Path] = {}
    masks: dict[str, Path] = {}
    for folder in filter(lambda path: _is_of_masks(path, root), folders):
        of_masks = _by_name(folders[folder])
        others = [other for other in folders if not _is_of_masks(other, root)]
        alike = [other for other in others if of_masks and _by_name(folders[other]).keys() == of_masks.keys()]
        if len(alike) != 1:
            images.clear()
            break
        before = f"{len(masks)}-" if masks else ""
        images |= {before + name: path for name, path in _by_name(folders[alike[0]]).items()}
        masks |= {before + name: path for name, path in of_masks.items()}
    if not images:
        shown = ", ".join(f"{folder.relative_to(root)}/ ({len(files)})" for folder, files in folders.items())
        raise UserError(
            "folders of images and of masks whose files pair by name",
            shown or shown_entries(root),
            "Unpack the archive yourself into images/ and masks/, and name that folder as the source.",
        )
    return images, masks


def _by_name(files: list[Path]) -> dict[str, Path]:
    """Files by the names that they pair by; none where two have the same."""
    named = {_bare(file.stem): file for file in files}
    return named if len(named) == len(files) else {}


def _is_of_masks(folder: Path, root: Path) -> bool:
    # The archive itself is called masks: only the last part of the path tells.
    name = folder.name.lower() if folder != root else ""
    return "mask" in name or "label" in name


def _bare(stem: str) -> str:
    bare = stem.lower()
    for word in ("masks", "mask", "label", "image", "img"):
        bare = bare.removesuffix(word).removeprefix(word).strip("_- .")
    return bare or stem


def _make_binary(path: Path) -> None:
    """Masks that were smoothed: from half of full scale on it is an indent. Others stay as they are."""
    mask = read_mask(path)
    values = set(np.unique(mask).tolist())
    if not (values <= {0, 255} or values <= {0, 1}):
        path.unlink()
        Image.fromarray(np.where(mask > 127, 255, 0).astype(np.uint8)).save(path.with_suffix(".png"))


def _refuse_argument(name: str, argument: str | None) -> None:
    if argument is not None:
        raise UserError(f'"{name}" alone', f'"{name}:{argument}"', f'Write "{name}".')
