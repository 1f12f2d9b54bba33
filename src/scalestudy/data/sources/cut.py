"""Cut the images of a source: stacks into pages, and large images into tiles."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.tiles import Tiling, cut, cut_mask, tiles_of
from scalestudy.data.sources.base import Contents, Source, SourceFindings, findings_of
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import IGNORE, Sample, Size
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

    def fetch(self, downloading: Any) -> None:
        if hasattr(self._source, "fetch"):
            self._source.fetch(downloading)

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
