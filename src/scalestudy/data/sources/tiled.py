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
