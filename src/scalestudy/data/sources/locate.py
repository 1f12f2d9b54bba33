"""Find the reader for the `source` of a study file, and cut its images: stacks into pages, or into tiles."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import platformdirs

from scalestudy.config.formula import suggestion
from scalestudy.config.settings import DataSettings
from scalestudy.data.images.tiles import Tiling, cut, cut_mask, tiles_of
from scalestudy.data.samples import IGNORE, Kind, Sample, Size
from scalestudy.data.sources import SOURCES, named_source
from scalestudy.data.sources.labels import SUFFIXES as TABLES
from scalestudy.data.sources.source import Contents, Source, SourceFindings, findings_of
from scalestudy.util.errors import UserError


def cut_source(source: Source, data: DataSettings) -> Source:
    """Return the source, wrapped in `Cut` if [data] asks for tiles or for pages as samples.

    Raises:
        UserError: If this source cannot be cut in that way.
    """
    tile = data.tile
    if source.kind == "custom" and (tile is not None or data.stack is not None):
        raise UserError(
            "samples of read(data), which are not cut",
            "`tile`" if tile is not None else "`stack`",
            "Remove the key under [data], and cut in read(data).",
        )
    if tile is None:
        return source if data.stack != "samples" else Cut(source, None)
    overlap = data.overlap if data.overlap is not None else min(tile) // 8
    for refused, expected, received, action in (
        (
            data.image_size is not None,
            "a tile, which cuts images, or an image_size, which scales them",
            "`tile` and `image_size` under [data]",
            "Remove one of the two.",
        ),
        (
            source.kind != "masks",
            "images with masks, of which each pixel has a class, to cut into tiles",
            f"{source.identity}, whose images have one class each",
            "Give an `image_size` instead of `tile`.",
        ),
        (
            overlap >= min(tile),
            "an overlap smaller than a tile",
            f"overlap = {overlap} of tiles of {tile[0]} x {tile[1]} pixels",
            "Choose a smaller overlap or larger tiles.",
        ),
    ):
        if refused:
            raise UserError(expected, received, action)
    return Cut(source, (tile, overlap))


class Cut:
    """The samples of a source, cut.

    Args:
        source: Source of whole images [H, W, C], or [pages, H, W, C] if its contents have `pages`.
        tile: Height and width of a tile, and the overlap; None cuts only stacks into pages.
    """

    def __init__(self, source: Source, tile: tuple[Size, int] | None) -> None:
        self.kind: Kind = source.kind
        self.label, self.identity, self.fingerprint = source.label, source.identity, source.fingerprint
        self.class_names = source.class_names
        self._source, self._tile = source, tile
        self._images: list[tuple[Size, int]] = []

    def contents(self) -> Contents:
        whole = self._source.contents()
        sizes = whole.sizes or [whole.input_shape[:2]] * whole.count
        self._images = list(zip(sizes, whole.pages or [1] * whole.count, strict=True))
        parts = [len(self._layout(size)) * pages for size, pages in self._images]
        starts = [0, *np.cumsum(parts).tolist()]
        names = whole.names or [str(row) for row in range(whole.count)]
        of_pages = [
            (f"{name}, page {page + 1}" if pages > 1 else name, size)
            for name, (size, pages) in zip(names, self._images, strict=True)
            for page in range(pages)
        ]
        changed: dict[str, Any] = {}
        if self._tile is not None:
            tile, overlap = self._tile
            changed = {
                "input_shape": (*tile, whole.input_shape[2]),
                "ignore": IGNORE,
                "tiling": Tiling(tile, overlap, tuple(of_pages)),
            }
        return replace(
            whole,
            count=starts[-1],
            names=[
                name if tile is None else f"{name} at {tile.top}, {tile.left}"
                for name, size in of_pages
                for tile in self._layout(size)
            ],
            groups=np.repeat(np.array(whole.groups or names, object), parts).tolist(),
            given={split: (starts[start], starts[stop]) for split, (start, stop) in whole.given.items()},
            **changed,
        )

    def rows(self) -> Iterator[Sample]:
        for image, target in self._source.rows():
            stacked = isinstance(target, np.ndarray) and target.ndim == 3
            for number, page in enumerate(image if image.ndim == 4 else image[None]):
                of_page: Any = target[number] if stacked else target  # type: ignore[index]
                if self._tile is None:
                    yield page, of_page
                    continue
                for tile in self._layout(page.shape[:2]):
                    yield cut(page, tile, self._tile[0]), cut_mask(of_page, tile, self._tile[0])

    def findings(self) -> SourceFindings:
        findings = findings_of(self._source)
        sentences = list(findings.remarks)
        pages = [pages for _, pages in self._images if pages > 1]
        if pages:
            sentences.append(f"{sum(pages)} pages of {len(pages)} stacks are samples, each stack one group")
        if self._tile is not None:
            (height, width), overlap = self._tile
            tiles = sum(len(self._layout(size)) * pages for size, pages in self._images)
            images = sum(pages for _, pages in self._images)
            sentences.append(
                f"{images} images cut into {tiles} tiles of {height} x {width} pixels that overlap by "
                f"{overlap} at least; the tiles of an image are one group"
            )
        return replace(findings, remarks=tuple(sentences))

    def _layout(self, size: Size) -> list[Any]:
        """Return the tiles of an image; [None] if it stays whole."""
        return tiles_of(size, *self._tile) if self._tile is not None else [None]


def find_source(data: DataSettings, *, base: Path) -> Source:
    """Open the source of `data`: a named source, a folder or a file. No image is read.

    Images are cut if `data` asks for tiles or for the pages of stacks.

    Raises:
        UserError: If the path does not exist or contains no readable data.
    """
    return cut_source(_whole_source(data, base), data)


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
        raise UserError("a source of data", "an empty string", "Name a folder, a file or a set under [data].")
    if data.read is not None:
        from scalestudy.data.sources.custom import CustomSource

        path = expand(source, base)
        # It is no `Source`: it writes its set itself, since its contents are not known in advance.
        custom = CustomSource(expand(str(data.read), base), data, path if path.exists() else None)
        return cast(Source, custom)
    name = named_source(source)
    if name is not None:
        _, colon, argument = source.partition(":")
        # Downloads go to the cache: make its path absolute.
        seen = data.model_copy(update={"cache": str(cache_folder(data.cache, base))})
        opened: Source = SOURCES.get(name)(argument if colon else None, seen)
        return opened
    path = expand(source, base)
    try:
        if not path.exists():
            last = next(parent for parent in path.parents if parent.exists())
            close = suggestion(path.name, os.listdir(last)) if last == path.parent and last.is_dir() else None
            raise UserError(
                f"a folder, an .npz file or one of {', '.join(SOURCES.names())} as source",
                f"{path}, which does not exist",
                f"Did you mean {close}?" if close else f"Correct it: {last} is the last part that exists.",
            )
        return open_path(path, data)
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
    path = os.path.realpath(expand(source, base))
    return Path(path) if os.path.isdir(path) else None


def expand(text: str, base: Path) -> Path:
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
        return expand(str(cache), base)
    return Path(platformdirs.user_cache_dir("scalestudy", appauthor=False)) / "prepared"


def open_path(path: Path, data: DataSettings) -> Source:
    """Return the reader for an absolute path.

    Raises:
        UserError: If it contains no readable data.
        OSError: If it cannot be accessed.
    """
    folder = path.is_dir()
    if folder or path.suffix.lower() in TABLES:
        from scalestudy.data.sources.folders import ImageFolder
        from scalestudy.data.sources.layouts import list_folder, list_table

        listing = list_folder(path, data) if folder else list_table(path, data)
        return ImageFolder(path if folder else path.parent, data, listing)
    if path.suffix.lower() == ".npz" and path.is_file():
        from scalestudy.data.sources.arrays import Npz

        return Npz(path, data)
    raise UserError(
        "a folder of images, an .npz file, or a table of images (.csv, .tsv, .jsonl)",
        f"the file {path}" if path.is_file() else f"{path}, which is no regular file",
        "Name the folder of the images, or save the arrays with numpy.savez_compressed.",
    )
