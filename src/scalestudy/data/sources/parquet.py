"""Parquet files that hold images, as Hugging Face stores data sets: `data/train-00000-of-00001.parquet`."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.data.images.masks import MaskFile
from scalestudy.data.sources.base import Contents, files_digest, refuse_unused
from scalestudy.data.sources.folders import FolderClasses, FolderMasks
from scalestudy.data.sources.layouts.base import Item, Listed, Look, Scan
from scalestudy.data.sources.layouts.listing import listing_of
from scalestudy.data.sources.layouts.names import leave_others, split_in
from scalestudy.data.sources.layouts.table import USUAL
from scalestudy.data.sources.left_out import LeftOut, Leftovers
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Sample
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    import polars as pl

_SUFFIXES = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"II*\0": ".tif", b"MM\0*": ".tif"}


@dataclass(frozen=True)
class Shard:
    """A file of rows, the split that its name says, and its columns."""

    path: Path
    split: str
    image: str
    target: str
    group: str | None
    masks: bool
    classes: tuple[str, ...]
    """Names of the classes by the numbers in the column, where the file says them."""


class ParquetImages:
    """Source of the images in Parquet files; while they are read, they lie in a temporary folder."""

    def __init__(self, root: Path, data: DataSettings, shards: list[Shard]) -> None:
        self.label, self.identity = root.name, str(root)
        self.kind: Kind = "masks" if shards[0].masks else "classes"
        self.fingerprint = files_digest(root, [shard.path for shard in shards])
        self._told = f"Parquet files of images ({shards[0].image!r} and {shards[0].target!r})"
        self._rest = _rest(root, shards)
        refuse_unused(data, ("file_column", "split_column"), f"images in Parquet files: {root}")
        self._data, self._shards = data, shards
        self._unpacked: tempfile.TemporaryDirectory[str] | None = None
        self._source: FolderClasses | FolderMasks | None = None

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What lies beside the files; and once headers are looked at, damaged images that it goes without."""
        return (*self._rest, *(self._source.left_out if self._source is not None else ()))

    @property
    def understood(self) -> str:
        """Which columns are read; and after `rows` what the values of masks mean."""
        return self._told if self._source is None else self._source.understood

    def contents(self) -> Contents:
        """Unpack all images, and look at their headers."""
        self._unpacked = tempfile.TemporaryDirectory(prefix="scalestudy-parquet-")
        root = Path(self._unpacked.name)
        items = [item for shard in self._shards for item in _unpack(shard, root)]
        classes = list(self._shards[0].classes) or None
        listing = listing_of(
            Listed(items, self._told, classes), Scan(Look(root), self._data, Leftovers(root))
        )
        reader = FolderMasks if self.kind == "masks" else FolderClasses
        self._source = reader(root, self._data, listing)
        return self._source.contents()

    def rows(self) -> Iterator[Sample]:
        """All samples in order. Called once: the unpacked images go at its end."""
        assert self._source is not None
        assert self._unpacked is not None
        with self._unpacked:
            yield from self._source.rows()

    def class_names(self) -> list[str]:
        """Names of the classes by index."""
        assert self._source is not None
        return self._source.class_names()

    def __getattr__(self, name: str) -> Any:
        """What more its reader tells, such as `ignored`."""
        if name.startswith("_") or self._source is None:
            raise AttributeError(name)
        return getattr(self._source, name)


def _rest(root: Path, shards: list[Shard]) -> tuple[LeftOut, ...]:
    left = Leftovers(root)
    taken = {shard.path for shard in shards} | {shard.path.parent for shard in shards}
    for folder in sorted({root, *(shard.path.parent for shard in shards)}):
        leave_others(folder, taken, left)
    return left.found()


def find_shards(root: Path, data: DataSettings) -> list[Shard]:
    """Parquet files with a column of images and one of targets, in a folder or its `data/`; often none.

    Raises:
        UserError: they have images, but no column of classes or masks.
    """
    look = Look(root)
    shards = []
    for folder in (look, *(folder for name, folder in look.folders.items() if name.lower() == "data")):
        for name in folder.files:
            if name.lower().endswith(".parquet"):
                shards += _shard(folder.path / name, data)
    return shards


def _shard(path: Path, data: DataSettings) -> list[Shard]:
    import polars as pl

    try:
        schema = pl.read_parquet_schema(path)
        metadata = pl.read_parquet_metadata(path).get("huggingface", "{}")
        features = json.loads(metadata).get("info", {}).get("features", {})
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise UserError(
            "a Parquet file that can be read",
            f"{path}: {str(error).splitlines()[0]}",
            "Replace it by an intact copy, or move it away.",
        ) from error
    images = [name for name, kind in schema.items() if _holds_images(kind)]
    if not images:
        return []
    small = {name.lower(): name for name in schema}
    usual = [small[name] for name in (*USUAL["label"], *USUAL["mask"], "annotation") if name in small]
    target = data.label_column or data.mask_column or next(iter(usual), None)
    if target is None or target not in schema:
        raise UserError(
            "a column of classes (label, ...) or of masks beside the images",
            f"{', '.join(schema)} in {path}",
            "Name it: `label_column` or `mask_column` under [data].",
        )
    if data.group_column is not None and data.group_column not in schema:
        raise UserError(
            f"a column {data.group_column!r}, as group_column under [data] says",
            f"{', '.join(schema)} in {path}",
            "Correct the key.",
        )
    image = next((name for name in images if name != target), images[0])
    classes = tuple(features.get(target, {}).get("names") or ())
    return [
        Shard(path, split_in(path.name) or "", image, target, data.group_column, target in images, classes)
    ]


def _holds_images(kind: "pl.DataType") -> bool:
    fields = {field.name for field in getattr(kind, "fields", ())}
    return {"bytes", "path"} <= fields


def _unpack(shard: Shard, root: Path) -> Iterator[Item]:
    import polars as pl

    columns = [shard.image, shard.target, *([shard.group] if shard.group else [])]
    frame = pl.read_parquet(shard.path, columns=list(dict.fromkeys(columns)))
    for row, cells in enumerate(frame.iter_rows(named=True)):
        image, target = cells[shard.image], cells[shard.target]
        group = None if shard.group is None or cells[shard.group] is None else str(cells[shard.group])
        name = f"{shard.path.stem}-{row:06}"
        file = _write(image, root / (shard.split or "all") / name, shard, row)
        if shard.masks:
            yield Item(file, MaskFile(_write(target, root / "masks" / name, shard, row)), shard.split, group)
        elif target is None or (shard.classes and not 0 <= int(target) < len(shard.classes)):
            raise UserError(
                f"a class in every row of {shard.path}",
                f"{target!r} in row {row}",
                "Leave out rows without a class.",
            )
        else:
            yield Item(file, shard.classes[int(target)] if shard.classes else str(target), shard.split, group)


def _write(image: dict[str, Any] | None, place: Path, shard: Shard, row: int) -> Path:
    content = (image or {}).get("bytes")
    if not content:
        raise UserError(
            "images inside the Parquet file",
            f"none in row {row} of {shard.path} (path {(image or {}).get('path')!r})",
            "Store the bytes of the images in it, or use the folder that they lie in.",
        )
    suffix = next((suffix for start, suffix in _SUFFIXES.items() if content.startswith(start)), "")
    suffix = suffix or Path(str((image or {}).get("path") or "")).suffix or ".png"
    place.parent.mkdir(exist_ok=True)
    file = place.with_name(place.name + suffix)
    file.write_bytes(content)
    return file
