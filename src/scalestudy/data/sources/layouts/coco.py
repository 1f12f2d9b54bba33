"""Images with COCO annotations: `annotations/instances_train.json`, `_annotations.coco.json`.

Masks are drawn from polygons and run lengths (T.-Y. Lin et al., ECCV 2014). A pixel belongs to a polygon if
its center does, by the even-odd rule.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from scalestudy.data.sources.files import Directory, ImageIndex, several
from scalestudy.data.sources.layouts.base import Layout, ListedSample, Listing, Scan
from scalestudy.data.sources.names import MASK, in_order, split_in, words
from scalestudy.data.types import IGNORE, MOST_CLASSES, Array, Size
from scalestudy.util.errors import UserError


def polygon(points: Array, size: Size) -> Array:
    """Return the pixels inside a polygon, bool [H, W].

    Args:
        points: x and y of the corners in pixels, shape [P, 2]; (0, 0) is the outer corner of the first pixel.
        size: Height and width.
    """
    height, width = size
    x, y = points.T
    next_x, next_y = np.roll(x, -1), np.roll(y, -1)
    first, last = (int(np.clip(np.floor(edge), 0, height)) for edge in (y.min(), y.max() + 1))
    centres = np.arange(first, last)[:, None] + 0.5
    rows, edges = np.nonzero((y <= centres) != (next_y <= centres))
    part = (centres[rows, 0] - y[edges]) / (next_y - y)[edges]
    crossings = x[edges] + part * (next_x - x)[edges]
    # A crossing switches all pixels to its right between inside and outside.
    changes = np.zeros((height, width + 1), np.int64)
    np.add.at(changes, (rows + first, np.clip(np.ceil(crossings - 0.5), 0, width).astype(np.int64)), 1)
    inside: Array = np.cumsum(changes, axis=1)[:, :width] % 2 == 1
    return inside


def shape(segmentation: Any, size: Size) -> Array:
    """Return the pixels of an annotation's `segmentation`, bool [H, W]: a union of polygons, or run lengths.

    Run lengths alternate between 0 and 1, column by column. Compressed run lengths need pycocotools.

    Raises:
        ValueError: If it is neither, if its size differs, or if pycocotools is needed and missing.
    """
    if isinstance(segmentation, dict):
        counts, height_width = segmentation["counts"], tuple(segmentation["size"])
        if isinstance(counts, str):
            try:
                from pycocotools import mask
            except ImportError as error:
                raise ValueError("compressed run lengths, which need `pip install pycocotools`") from error
            drawn: Array = mask.decode({"size": list(height_width), "counts": counts}).astype(bool)
            if drawn.shape != size:
                raise ValueError(f"runs over {drawn.shape} in an image of {size}")
            return drawn
        if height_width != size or min(counts, default=0) < 0 or sum(counts) != size[0] * size[1]:
            raise ValueError(f"runs over {sum(counts)} pixels of {height_width} in an image of {size}")
        return np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(size[1], size[0]).T
    joined = np.zeros(size, bool)
    for corners in segmentation:
        points = np.asarray(corners, float)
        if points.ndim != 1 or len(points) < 6 or len(points) % 2 or not np.isfinite(points).all():
            raise ValueError(f"a polygon of {np.size(points)} numbers: three corners are six")
        joined |= polygon(points.reshape(-1, 2), size)
    return joined


NOT_ANNOTATED = "in no list of annotated images"
_BEGINNING = 65_536
_KEYS = (b'"images"', b'"annotations"', b'"categories"')


@dataclass(frozen=True)
class DrawnMask:
    """A mask drawn from annotations: first crowds as ignored pixels, then objects in order.

    Attributes:
        file: File of annotations.
        image: Name of the image in this file.
        size: Height and width in the file, or None.
        shapes: Class index and `segmentation` of each annotation.
    """

    file: Path
    image: str
    size: Size | None
    shapes: tuple[tuple[int, Any], ...]

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.file,)

    def read(self, size: Size) -> Array:
        if self.size not in (None, size):
            raise UserError(
                "annotations with the size of their image",
                f"{self} for {' x '.join(map(str, self.size or ()))} of {' x '.join(map(str, size))} pixels",
                "Correct its height and width, or use the image that was annotated.",
            )
        mask = np.zeros(size, np.uint8)
        for index, segmentation in sorted(self.shapes, key=lambda item: item[0] != IGNORE):
            try:
                mask[shape(segmentation, size)] = index
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                raise UserError(
                    "annotations as polygons or run lengths", f"{self}: {error}", "Correct that annotation."
                ) from error
        return mask

    def __str__(self) -> str:
        return f"{self.file} (for {self.image})"


def _candidates(root: Directory) -> list[tuple[Path, str]]:
    """Return JSON files that may be annotations, with the split in their name or folder."""
    files = []
    for folder in (root, *root.folders.values()):
        split = split_in(folder.path.name) if folder is not root else None
        if folder is root or split or MASK & set(words(folder.path.name)):
            paths = [folder.path / name for name in folder.files if name.lower().endswith(".json")]
            files += [(path, split or split_in(path.name) or "") for path in paths]
    return files


def _files(root: Directory) -> list[tuple[Path, str]]:
    files = [(path, split) for path, split in _candidates(root) if _begins_like_coco(path)]
    instances = [(path, split) for path, split in files if "instances" in words(path.stem)]
    return instances or files


def refuse_unreadable(root: Directory) -> None:
    """Raise the error of a file that only by its name is COCO annotations, if no layout fits the folder."""
    for path, _ in _candidates(root):
        if {"instances", "annotations", "coco"} & set(words(path.stem)):
            _read(path)


def _begins_like_coco(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        start = stream.read(_BEGINNING)
    return start.lstrip().startswith(b"{") and any(key in start for key in _KEYS)


def _list(scan: Scan) -> Listing:
    root = scan.root.path
    files = _files(scan.root)
    if not files:
        raise UserError("a file of COCO annotations", f"none in {root}", "Put it next to the images.")
    contents = [(file, split, _read(file)) for file, split in files]
    names, index_of = _categories({file: content for file, _, content in contents})
    index = ImageIndex(root)
    samples = [sample for content in contents for sample in _samples(*content, index_of, index)]
    paths = [file for file, _ in files]
    index.leave_rest({sample.image for sample in samples}, paths, NOT_ANNOTATED, scan.left)
    shapes = sum(len(sample.target.shapes) for sample in samples if isinstance(sample.target, DrawnMask))
    shown = ", ".join(file.relative_to(root).as_posix() for file in paths)
    objects = f"{shapes} objects of {len(names) - 1} classes, later over earlier ones"
    return Listing(samples, f"COCO annotations ({shown}): {objects}", names, sources=paths)


class CocoImage(BaseModel):
    """An image of a file of annotations."""

    id: int | str
    file_name: str
    height: int | None = None
    width: int | None = None


class CocoAnnotation(BaseModel):
    """An object of an image."""

    image_id: int | str
    category_id: int | str
    segmentation: Any = None
    iscrowd: int = 0


class CocoCategory(BaseModel):
    """A class of objects."""

    id: int | str
    name: str


class CocoFile(BaseModel):
    """The parts of an annotation file that are read."""

    images: list[CocoImage]
    annotations: list[CocoAnnotation]
    categories: list[CocoCategory]


def _read(file: Path) -> CocoFile:
    try:
        return CocoFile.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        received = f"{file}: {'.'.join(map(str, first['loc']))} {first['msg']}"
        expected = "COCO annotations: images, annotations and categories with their keys"
        raise UserError(expected, received, "Correct the file, or move it away.") from error


def _categories(contents: dict[Path, CocoFile]) -> tuple[list[str], dict[int | str, int]]:
    """Return class names, background first, and the class index of each annotated category."""
    known: dict[int | str, str] = {}
    used: set[int | str] = set()
    for file, content in contents.items():
        for category in content.categories:
            if known.setdefault(category.id, category.name) != category.name:
                raise UserError(
                    "the same categories in all annotations",
                    f"{known[category.id]!r} and {category.name!r} as category {category.id} of {file}",
                    "Use the same numbers in all files.",
                )
        used |= {annotation.category_id for annotation in content.annotations}
        if unknown := used - set(known):
            received = f"category {min(unknown, key=str)} in {file}"
            raise UserError("annotations of listed categories", received, "List it under categories.")
    ids = sorted(used, key=lambda number: in_order(str(number)))
    ids = [number for number in ids if known[number].lower() != "background"]
    if not 0 < len(ids) < MOST_CLASSES:
        raise UserError(
            f"1 to {MOST_CLASSES - 1} categories with annotations", f"{len(ids)} in {next(iter(contents))}",
            "Annotate some objects, or merge categories.",
        )  # fmt: skip
    index_of = dict.fromkeys(used, 0) | {number: index for index, number in enumerate(ids, 1)}
    return ["background", *(known[number] for number in ids)], index_of


def _samples(
    file: Path, split: str, content: CocoFile, index_of: dict[int | str, int], index: ImageIndex
) -> list[ListedSample]:
    shapes: dict[int | str, list[tuple[int, Any]]] = defaultdict(list)
    for annotation in content.annotations:
        number = IGNORE if annotation.iscrowd else index_of[annotation.category_id]
        shapes[annotation.image_id].append((number, annotation.segmentation))
    samples = []
    missing = []
    for listed in content.images:
        image = index.find(listed.file_name, file, split)
        if image is None:
            missing.append(listed.file_name)
            continue
        size = (listed.height, listed.width) if listed.height and listed.width else None
        samples.append(
            ListedSample(image, DrawnMask(file, image.name, size, tuple(shapes[listed.id])), split)
        )
    if missing:
        raise UserError(
            f"all images that {file} lists", f"{several(missing)} not in {index.root}",
            "Add them, or remove them from the annotations.",
        )  # fmt: skip
    return samples


COCO = Layout(
    name="coco", words="images with COCO annotations, such as annotations/instances_train.json", list=_list,
    recognise=lambda root, _: bool(_files(root)), whole=True,
)  # fmt: skip
