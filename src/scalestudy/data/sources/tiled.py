"""A source whose images are cut into tiles."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from scalestudy.data.images.tiles import Tile, cut, cut_mask, overlap_of, tiles_of
from scalestudy.data.samples import IGNORE, Kind, Sample, Size
from scalestudy.data.sources.source import Contents, Source, SourceFindings, findings_of


class TiledSource:
    """The images with masks of a source, cut into tiles.

    Args:
        source: Source of whole images.
        tile: Height and width of a tile.
    """

    def __init__(self, source: Source, tile: Size) -> None:
        self.kind: Kind = source.kind
        self.label = source.label
        self.identity = source.identity
        self.fingerprint = source.fingerprint
        self.class_names = source.class_names
        self._source = source
        self._tile = tile
        self._overlap = overlap_of(tile)
        self._counts: list[int] = []

    def contents(self) -> Contents:
        whole = self._source.contents()
        sizes = whole.sizes or [whole.input_shape[:2]] * whole.count
        names = whole.names or list(map(str, range(whole.count)))
        # The tiles of an image overlap: a split keeps them together.
        groups_of_images = whole.groups or names
        self._counts = []
        tile_names: list[str] = []
        groups: list[str] = []
        # First tile of each image, and the number of all tiles.
        starts = [0]
        for name, group, size in zip(names, groups_of_images, sizes, strict=True):
            tiles = self._tiles(size)
            for tile in tiles:
                tile_names.append(f"{name} at {tile.top}, {tile.left}")
                groups.append(group)
            starts.append(len(tile_names))
            self._counts.append(len(tiles))
        given = {}
        for split, (start, stop) in whole.given.items():
            given[split] = (starts[start], starts[stop])
        return replace(
            whole,
            count=len(tile_names),
            names=tile_names,
            groups=groups,
            given=given,
            input_shape=(*self._tile, whole.input_shape[2]),
            # Masks are ignored outside the cores of their tiles.
            ignore=IGNORE,
        )

    def rows(self) -> Iterator[Sample]:
        for image, mask in self._source.rows():
            assert isinstance(mask, np.ndarray)
            for tile in self._tiles(image.shape[:2]):
                part = cut(image, tile, self._tile)
                part_of_mask = cut_mask(mask, tile, self._tile)
                yield part, part_of_mask

    def findings(self) -> SourceFindings:
        findings = findings_of(self._source)
        height, width = self._tile
        remark = (
            f"{len(self._counts)} images cut into {sum(self._counts)} tiles of {height} x "
            f"{width} pixels that overlap by {self._overlap} at least; the tiles of an image are one "
            "group"
        )
        return replace(findings, remarks=(*findings.remarks, remark))

    def _tiles(self, size: Size) -> list[Tile]:
        return tiles_of(size, self._tile, self._overlap)
