"""Find the reader for the `source` of a study file, and cut its images into tiles."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import platformdirs

from scalestudy.config.formula import suggestion
from scalestudy.config.settings import DataSettings
from scalestudy.data.images.tiles import Tile, cut, cut_mask, overlap_of, tiles_of
from scalestudy.data.samples import IGNORE, Kind, Sample, Size
from scalestudy.data.sources import SOURCES, named_source
from scalestudy.data.sources.labels import TABLES
from scalestudy.data.sources.source import Contents, Source, SourceFindings, findings_of
from scalestudy.util.errors import UserError


class Cut:
    """The images with masks of a source, cut into tiles.

    Args:
        source: Source of whole images.
        tile: Height and width of a tile.
    """

    def __init__(self, source: Source, tile: Size) -> None:
        self.kind: Kind = source.kind
        self.label, self.identity, self.fingerprint = (
            source.label,
            source.identity,
            source.fingerprint,
        )
        self.class_names = source.class_names
        self._source, self._tile, self._overlap = source, tile, overlap_of(tile)
        self._counts: list[int] = []

    def contents(self) -> Contents:
        whole = self._source.contents()
        sizes = whole.sizes or [whole.input_shape[:2]] * whole.count
        names = whole.names or [str(row) for row in range(whole.count)]
        self._counts = [len(self._tiles(size)) for size in sizes]
        starts = [0, *np.cumsum(self._counts).tolist()]
        return replace(
            whole,
            count=starts[-1],
            names=[
                f"{name} at {tile.top}, {tile.left}"
                for name, size in zip(names, sizes, strict=True)
                for tile in self._tiles(size)
            ],
            groups=np.repeat(
                np.array(whole.groups or names, object), self._counts
            ).tolist(),
            given={
                split: (starts[start], starts[stop])
                for split, (start, stop) in whole.given.items()
            },
            input_shape=(*self._tile, whole.input_shape[2]),
            ignore=IGNORE,
        )

    def rows(self) -> Iterator[Sample]:
        for image, mask in self._source.rows():
            assert isinstance(mask, np.ndarray)
            for tile in self._tiles(image.shape[:2]):
                yield cut(image, tile, self._tile), cut_mask(mask, tile, self._tile)

    def findings(self) -> SourceFindings:
        findings = findings_of(self._source)
        remark = (
            f"{len(self._counts)} images cut into {sum(self._counts)} tiles of {self._tile[0]} x "
            f"{self._tile[1]} pixels that overlap by {self._overlap} at least; the tiles of an image are one "
            "group"
        )
        return replace(findings, remarks=(*findings.remarks, remark))

    def _tiles(self, size: Size) -> list[Tile]:
        return tiles_of(size, self._tile, self._overlap)


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
    return Cut(source, data.tile)


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
            expand_path(str(data.read), base), data, path if path.exists() else None
        )
        return cast(Source, custom)
    name = named_source(source)
    if name is not None:
        _, colon, argument = source.partition(":")
        # Sources of other packages may download to the cache: make its path absolute.
        seen = data.model_copy(update={"cache": str(cache_folder(data.cache, base))})
        opened: Source = SOURCES.get(name)(argument if colon else None, seen)
        return opened
    path = expand_path(source, base)
    try:
        if not path.exists():
            last = next(parent for parent in path.parents if parent.exists())
            close = (
                suggestion(path.name, os.listdir(last))
                if last == path.parent and last.is_dir()
                else None
            )
            missing = path.relative_to(last).parts[0]
            raise UserError(
                f"a folder, an .npz file or one of {', '.join(SOURCES.names())} as source",
                f"{path}, which does not exist",
                f"Did you mean {close}?"
                if close
                else f"Correct the path: {last} exists, but has no {missing}.",
            )
        folder = path.is_dir()
        if folder or (path.suffix.lower() in TABLES and path.is_file()):
            from scalestudy.data.sources.folders import ImageFolder
            from scalestudy.data.sources.layouts import list_samples

            return ImageFolder(
                path if folder else path.parent, data, list_samples(path, data)
            )
        if path.suffix.lower() == ".npz" and path.is_file():
            from scalestudy.data.sources.arrays import Npz

            return Npz(path, data)
        raise UserError(
            "a folder of images, an .npz file, or a table of images (.csv, .tsv)",
            f"the file {path}"
            if path.is_file()
            else f"{path}, which is no regular file",
            "Name the folder of the images, or save the arrays with numpy.savez_compressed.",
        )
    except OSError as error:
        raise UserError(
            "a readable source",
            f"{error.filename or path}: {error.strerror}",
            "Check that it exists, is readable and no longer changes, or name another source.",
        ) from error


def folder_of(source: str, base: Path) -> Path | None:
    """Return the folder of a source with links resolved; None for a file or a named source."""
    if named_source(source) is not None:
        return None
    path = os.path.realpath(expand_path(source, base))
    return Path(path) if os.path.isdir(path) else None


def expand_path(text: str, base: Path) -> Path:
    """Return an absolute path: expand `~` and environment variables; relative paths start at `base`.

    Raises:
        UserError: If a variable is not set.
    """
    expanded = os.path.expanduser(os.path.expandvars(text))
    unset = re.search(r"\$(\w+|\{\w+\})", expanded)
    if unset and not Path(base, expanded).exists():
        raise UserError(
            f"the environment variable {unset[1].strip('{}')} to be set",
            f"{text!r} without it",
            "Set it, or write the path out.",
        )
    return Path(os.path.abspath(Path(base, expanded)))


def cache_folder(cache: str | Path | None, base: Path = Path(".")) -> Path:
    """Return the folder of prepared data sets: `cache` relative to `base`, or the user's cache folder."""
    if cache is not None:
        return expand_path(str(cache), base)
    return Path(platformdirs.user_cache_dir("scalestudy", appauthor=False)) / "prepared"
