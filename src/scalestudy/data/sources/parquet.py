"""Parquet files with images, as in data sets of Hugging Face: `data/train-00000-of-00001.parquet`."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.data.images.masks import MaskFile
from scalestudy.data.sources.base import Contents, SourceFindings, files_digest, refuse_unused
from scalestudy.data.sources.files import Directory, Leftovers
from scalestudy.data.sources.folders import ImageFolder
from scalestudy.data.sources.layouts.base import ListedSample, Listing, Scan
from scalestudy.data.sources.layouts.find import finished
from scalestudy.data.sources.layouts.table import USUAL
from scalestudy.data.sources.names import split_in
from scalestudy.data.types import Sample
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

_SUFFIXES = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"II*\0": ".tif", b"MM\0*": ".tif"}


class ParquetFile(NamedTuple):
    """A file of rows, the split in its name, and its columns.

    `classes` are class names by number, if the file defines them.
    """

    path: Path
    split: str
    image: str
    target: str
    group: str | None
    masks: bool
    classes: tuple[str, ...]


class ParquetImages(ImageFolder):
    """Source of the images in Parquet files, which are unpacked to a temporary folder."""

    def __init__(self, root: Path, data: DataSettings, files: list[ParquetFile]) -> None:
        self.label, self.identity = root.name, str(root)
        self.kind = "masks" if files[0].masks else "classes"
        self.fingerprint = files_digest(root, [file.path for file in files])
        left = Leftovers(root)
        taken = {file.path for file in files} | {file.path.parent for file in files}
        for folder in sorted({root, *(file.path.parent for file in files)}):
            left.add_others(folder, taken)
        self._beside = left.groups()
        refuse_unused(data, ("file_column", "split_column"), f"images in Parquet files: {root}")
        self._data, self._files = data, files
        self._unpacked: tempfile.TemporaryDirectory[str] | None = None

    def contents(self) -> Contents:
        self._unpacked = tempfile.TemporaryDirectory(prefix="scalestudy-parquet-")
        root, first = Path(self._unpacked.name), self._files[0]
        samples = [sample for file in self._files for sample in _unpack(file, root)]
        understood = f"Parquet files of images ({first.image!r} and {first.target!r})"
        listing = Listing(samples, understood, list(first.classes) or None)
        listing = finished(listing, Scan(Directory(root), self._data, Leftovers(root)))
        of_files = self.label, self.identity, self.fingerprint
        super().__init__(root, self._data, listing)
        self.label, self.identity, self.fingerprint = of_files
        return super().contents()

    def rows(self) -> Iterator[Sample]:
        assert self._unpacked is not None
        with self._unpacked:
            yield from super().rows()

    def findings(self) -> SourceFindings:
        if self._unpacked is None:
            return SourceFindings(self._beside)
        findings = super().findings()
        return replace(findings, left_out=(*self._beside, *findings.left_out))


def find_files(root: Path, data: DataSettings) -> list[ParquetFile]:
    """Return the Parquet files with columns of images and targets in a folder or its `data/`.

    Raises:
        UserError: If a file has images, but no column of classes or masks.
    """
    top = Directory(root)
    folders = [top, *(folder for name, folder in top.folders.items() if name.lower() == "data")]
    paths = [folder.path / name for folder in folders for name in folder.files]
    files = [_file(path, data) for path in paths if path.suffix.lower() == ".parquet"]
    return [file for file in files if file is not None]


def _file(path: Path, data: DataSettings) -> ParquetFile | None:
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
    images = [
        name
        for name, kind in schema.items()
        if {"bytes", "path"} <= {field.name for field in getattr(kind, "fields", ())}
    ]
    if not images:
        return None
    small = {name.lower(): name for name in schema}
    usual = [small[name] for name in (*USUAL["label"], *USUAL["mask"], "annotation") if name in small]
    target = data.label_column or data.mask_column or next(iter(usual), None)
    for key, what, missing in (
        ("label_column` or `mask_column", "of classes (label, ...) or of masks", target not in schema),
        ("group_column", f"{data.group_column!r} of groups", data.group_column not in (None, *schema)),
    ):
        if missing:
            received = f"{', '.join(schema)} in {path}"
            raise UserError(
                f"a column {what} besides the images", received, f"Name it: `{key}` under [data]."
            )
    image = next((name for name in images if name != target), images[0])
    classes = tuple(features.get(target, {}).get("names") or ())
    split = split_in(path.name) or ""
    return ParquetFile(path, split, image, str(target), data.group_column, target in images, classes)


def _unpack(file: ParquetFile, root: Path) -> Iterator[ListedSample]:
    import polars as pl

    columns = {file.image, file.target, *([file.group] if file.group else [])}
    for row, cells in enumerate(pl.read_parquet(file.path, columns=list(columns)).iter_rows(named=True)):
        target: Any = cells[file.target]
        group = None if file.group is None or cells[file.group] is None else str(cells[file.group])
        name = f"{file.path.stem}-{row:06}"
        image = _write(cells[file.image], root / (file.split or "all") / name, file, row)
        if file.masks:
            target = MaskFile(_write(target, root / "masks" / name, file, row))
        elif target is None or (file.classes and not 0 <= int(target) < len(file.classes)):
            raise UserError(
                f"a class in every row of {file.path}",
                f"{target!r} in row {row}",
                "Remove rows without a class.",
            )
        else:
            target = file.classes[int(target)] if file.classes else str(target)
        yield ListedSample(image, target, file.split, group)


def _write(image: dict[str, Any] | None, place: Path, file: ParquetFile, row: int) -> Path:
    content, path = (image or {}).get("bytes"), str((image or {}).get("path") or "")
    if not content:
        raise UserError(
            "images inside the Parquet file",
            f"none in row {row} of {file.path} (path {path!r})",
            "Store the bytes of the images in it, or use the folder of the images.",
        )
    known = next((suffix for start, suffix in _SUFFIXES.items() if content.startswith(start)), "")
    place.parent.mkdir(exist_ok=True)
    written = place.with_name(place.name + (known or Path(path).suffix or ".png"))
    written.write_bytes(content)
    return written
