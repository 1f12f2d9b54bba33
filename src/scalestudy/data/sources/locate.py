"""Find the reader for the `source` of a study file."""

import os
from pathlib import Path
from typing import cast

from scalestudy.config.formula import suggestion
from scalestudy.config.settings import DataSettings
from scalestudy.data.sources import SOURCES, named_source
from scalestudy.data.sources.labels import TABLES
from scalestudy.data.sources.paths import cache_folder, expand_path
from scalestudy.data.sources.source import Source
from scalestudy.data.sources.tiled import TiledSource
from scalestudy.util.errors import UserError


def find_source(data: DataSettings, *, base: Path) -> Source:
    """Open the source of `data`: a named source, a folder or a file. No image is read.

    Images are cut if `data` asks for tiles.

    Raises:
        UserError: If the path does not exist or contains no readable data, or if it cannot be cut.
    """
    source = _whole_source(data, base)
    if data.tile is None:
        return source
    if source.kind != "masks":
        raise UserError(
            "images with masks, of which each pixel has a class, to cut into tiles",
            f"{source.identity}, whose samples have no masks, or are read by `read(data)`",
            "Give an `image_size` instead of `tile`, or cut in `read(data)`.",
        )
    if data.image_size is not None:
        raise UserError(
            "a tile, which cuts images, or an image_size, which scales them",
            "`tile` and `image_size` under [data]",
            "Remove one of the two.",
        )
    return TiledSource(source, data.tile)


def find_whole(data: DataSettings, *, base: Path) -> Source:
    """Open the source of `data` with original images, neither resized nor cut.

    Raises:
        UserError: As in `find_source`.
    """
    # Set `tile`, because only then sizes may differ.
    return _whole_source(data.model_copy(update={"tile": (1, 1)}), base)


def _whole_source(data: DataSettings, base: Path) -> Source:
    source = str(data.source)
    if not source.strip():
        raise UserError(
            "a source of data",
            "an empty string",
            "Name a folder, a file or a set under [data].",
        )
    if data.read is not None:
        from scalestudy.data.sources.custom import CustomSource

        path = expand_path(source, base)
        # It is no `Source`: it writes its set itself, since its contents are not known in advance.
        custom = CustomSource(
            expand_path(str(data.read), base),
            data,
            path if path.exists() else None,
        )
        return cast(Source, custom)
    name = named_source(source)
    if name is not None:
        _, colon, argument = source.partition(":")
        # Sources of other packages may download to the cache: make its path absolute.
        seen = data.model_copy(update={"cache": str(cache_folder(data.cache, base))})
        return SOURCES.get(name)(argument if colon else None, seen)
    path = expand_path(source, base)
    try:
        if not path.exists():
            raise UserError(
                f"a folder, an .npz file or one of {', '.join(SOURCES.names())} as source",
                f"{path}, which does not exist",
                _correction(path),
            )
        folder = path.is_dir()
        if folder or (path.suffix.lower() in TABLES and path.is_file()):
            from scalestudy.data.sources.folders import ImageFolder
            from scalestudy.data.sources.layouts import list_samples

            root = path if folder else path.parent
            return ImageFolder(root, data, list_samples(path, data))
        if path.suffix.lower() == ".npz" and path.is_file():
            from scalestudy.data.sources.arrays import Npz

            return Npz(path, data)
        received = f"{path}, which is no regular file"
        if path.is_file():
            received = f"the file {path}"
        raise UserError(
            "a folder of images, an .npz file, or a table of images (.csv, .tsv)",
            received,
            "Name the folder of the images, or save the arrays with numpy.savez_compressed.",
        )
    except OSError as error:
        raise UserError(
            "a readable source",
            f"{error.filename or path}: {error.strerror}",
            "Check that it exists, is readable and no longer changes, or name another source.",
        ) from error


def _correction(path: Path) -> str:
    """Return what to do about a path that does not exist."""
    last = path.parent
    while not last.exists():
        last = last.parent
    if last == path.parent and last.is_dir():
        close = suggestion(path.name, os.listdir(last))
        if close:
            return f"Did you mean {close}?"
    missing = path.relative_to(last).parts[0]
    return f"Correct the path: {last} exists, but has no {missing}."
