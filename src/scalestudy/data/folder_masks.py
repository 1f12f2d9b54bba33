"""A folder with images/ and masks/, paired by name; optionally inside train/, val/ and test/."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scalestudy.data import layout
from scalestudy.data.folder_images import common_contents
from scalestudy.data.images import read_header, read_image, read_mask
from scalestudy.data.kinds import Kind
from scalestudy.data.mask_values import MaskValues
from scalestudy.data.resize import resize_image, resize_mask
from scalestudy.data.source import (
    IGNORE,
    Array,
    Contents,
    Ranges,
    Sample,
    Size,
    files_digest,
    require_two,
    side_by_side,
)
from scalestudy.errors import UserError


@dataclass(frozen=True)
class Pair:
    """An image and its mask."""

    image: Path
    mask: Path


class FolderMasks:
    """Source of images with masks of class indices."""

    kind: Kind = "masks"

    def __init__(self, root: Path, image_size: Size | None) -> None:
        self.label = root.name
        self.identity = str(root)
        self._root = root
        self._image_size = image_size
        self._pairs, self._given = find_pairs(root)
        require_two(len(self._pairs), str(root))
        files = (file for pair in self._pairs for file in (pair.image, pair.mask))
        self.fingerprint = files_digest(root, files)
        self._values = MaskValues()
        self._channels = 1

    def contents(self) -> Contents:
        """Shape, depth and order of the samples, from headers alone."""
        headers = list(side_by_side(read_header, (pair.image for pair in self._pairs)))
        names = [pair.image.relative_to(self._root).as_posix() for pair in self._pairs]
        contents = common_contents(headers, self._image_size, names, self._given, IGNORE)
        self._channels = contents.input_shape[2]
        return contents

    def rows(self) -> Iterator[Sample]:
        """All samples in order."""
        for pair, image, mask in side_by_side(self._decode, self._pairs):
            indices: Array = self._values.indices(mask, str(pair.mask))
            if self._image_size is not None:
                indices = resize_mask(indices, self._image_size)
            yield image, indices

    def class_names(self) -> list[str]:
        """Names of the classes by index."""
        return self._values.class_names()

    def _decode(self, pair: Pair) -> tuple[Pair, Array, Array]:
        image = read_image(pair.image, self._channels)
        mask = read_mask(pair.mask)
        if mask.shape != image.shape[:2]:
            raise UserError(
                "a mask of the size of its image",
                f"{pair.mask} of {mask.shape[0]} x {mask.shape[1]} for {pair.image} of "
                f"{image.shape[0]} x {image.shape[1]} pixels (height x width)",
                "Save the mask at the size of its image.",
            )
        return pair, image if self._image_size is None else resize_image(image, self._image_size), mask


def find_pairs(root: Path) -> tuple[list[Pair], Ranges]:
    """All pairs in order of split and name, and the rows of each split (none without split folders).

    Raises:
        UserError: an image without a mask or a mask without an image (names up to 5), or two of one name.
    """
    pairs: list[Pair] = []
    given: Ranges = {}
    for split, folder in layout.parts(root).items():
        start = len(pairs)
        inside = {entry.name.lower(): entry for entry in layout.subfolders(folder)}
        images, masks = _by_stem(inside["images"]), _by_stem(inside["masks"])
        alone = [images[stem] for stem in images if stem not in masks]
        alone += [masks[stem] for stem in masks if stem not in images]
        if alone:
            shown = ", ".join(str(file) for file in alone[:5])
            more = f" and {len(alone) - 5} more" if len(alone) > 5 else ""
            raise UserError(
                "a mask of the same name for every image, and an image for every mask",
                f"{shown}{more} without the other of the pair",
                "Add what is missing, or rename the files so that they pair (the extension may differ).",
            )
        pairs += [Pair(images[stem], masks[stem]) for stem in images]
        if split:
            given[split] = (start, len(pairs))
    return pairs, given


def _by_stem(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in layout.image_files(folder):
        if file.stem in found:
            raise UserError(
                "one file for each name",
                f"{found[file.stem]} and {file.name}",
                "Rename or remove one of the two.",
            )
        found[file.stem] = file
    return found
