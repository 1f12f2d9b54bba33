"""A folder with images/ and masks/, paired by name; optionally inside train/, val/ and test/."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.data import layout
from scalestudy.data.faults import each_or_refused, together
from scalestudy.data.files_in import image_files, several
from scalestudy.data.folder_images import FolderImages
from scalestudy.data.images import read_header
from scalestudy.data.kinds import Kind
from scalestudy.data.left_out import Leftovers
from scalestudy.data.mask_values import MaskValues
from scalestudy.data.source import (
    IGNORE,
    Array,
    Contents,
    Ranges,
    Sample,
    files_digest,
    require_two,
)
from scalestudy.errors import UserError
from scalestudy.study.settings import DataSettings


@dataclass(frozen=True)
class Pair:
    """An image and its mask."""

    image: Path
    mask: Path


class FolderMasks:
    """Source of images with masks of class indices."""

    kind: Kind = "masks"

    def __init__(self, root: Path, data: DataSettings) -> None:
        self.label = root.name
        self.identity = str(root)
        self._root = root
        self._images = FolderImages(root, data)
        left = Leftovers(root)
        self._pairs, self._given = find_pairs(root, left)
        self.left_out = left.found()
        require_two(len(self._pairs), str(root))
        files = (file for pair in self._pairs for file in (pair.image, pair.mask))
        self.fingerprint = files_digest(root, files)
        self._values = MaskValues()
        self._turned: set[Path] = set()

    def contents(self) -> Contents:
        """Shape, depth and order of the samples, from headers alone."""
        headers = list(each_or_refused(self._images.header, [pair.image for pair in self._pairs]))
        self._turned = {header.path for header in headers if header.turned}
        names = [pair.image.relative_to(self._root).as_posix() for pair in self._pairs]
        return self._images.contents(headers, names, self._given, IGNORE)

    def pick(self, rows: Sequence[int]) -> None:
        """Give only these rows from now on."""
        self._pairs = [self._pairs[row] for row in rows]

    def rows(self) -> Iterator[Sample]:
        """All samples in order."""
        refused: list[UserError] = []
        for pair, image, mask in each_or_refused(self._decode, self._pairs):
            try:
                indices: Array = self._values.indices(mask, str(pair.mask))
            except UserError as error:
                refused.append(error)
            else:
                yield image, self._images.fit.mask(indices)
        if refused:
            raise together(refused)

    def class_names(self) -> list[str]:
        """Names of the classes by index."""
        return self._values.class_names()

    def remarks(self) -> list[str]:
        """What was done to the images. Called after `rows` is exhausted."""
        return self._images.remarks()

    def _decode(self, pair: Pair) -> tuple[Pair, Array, Array]:
        image = self._images.read(pair.image)
        mask = self._images.read_mask(pair.mask)
        if mask.shape != image.shape[:-1]:
            raise UserError(
                "a mask of the size of its image",
                f"{pair.mask} of {_shown(mask.shape)} for {pair.image} of {_shown(image.shape[:-1])} pixels "
                "(height x width)",
                "Save the mask at the size of its image.",
            )
        if pair.image in self._turned:
            self._refuse_doubt(pair, mask.shape[-2:])
        return pair, self._images.fit.image(image), mask

    def _refuse_doubt(self, pair: Pair, size: tuple[int, ...]) -> None:
        """Of a photograph turned by its EXIF data, only the sizes tell whether its mask was drawn upright."""
        header = read_header(pair.image)
        if header.size == header.stored and not read_header(pair.mask).turned:
            raise UserError(
                "images that are stored upright, as their masks are",
                f"{pair.image}, which is turned by its EXIF orientation, while {pair.mask} is not; "
                f"of {size[0]} x {size[1]} pixels both ways, it may lie either way on its image",
                "Save the image upright without that tag, and see that the mask lies on it.",
            )


def _shown(shape: tuple[int, ...]) -> str:
    pages = f"{shape[0]} page{'s' * (shape[0] > 1)} of " if len(shape) == 3 else ""
    return f"{pages}{shape[-2]} x {shape[-1]}"


def find_pairs(root: Path, left: Leftovers) -> tuple[list[Pair], Ranges]:
    """All pairs in order of split and name, and the rows of each split (none without split folders).

    `left` is told what is left out.

    Raises:
        UserError: an image without a mask or a mask without an image (names up to 5), or two of one name.
    """
    pairs: list[Pair] = []
    given: Ranges = {}
    parts = layout.parts(root)
    if "" not in parts:
        layout.leave_others(root, parts.values(), left)
    for split, folder in parts.items():
        start = len(pairs)
        both = [layout.named(folder, (name,), f"the {name}") for name in ("images", "masks")]
        taken = [each for each in both if each is not None]
        layout.leave_others(folder, taken, left)
        images, masks = (_by_stem(each, left) for each in taken)
        alone = [images[stem] for stem in images if stem not in masks]
        alone += [masks[stem] for stem in masks if stem not in images]
        if alone:
            shown = several([str(file) for file in alone])
            raise UserError(
                "a mask of the same name for every image, and an image for every mask",
                f"{shown} without the other of the pair",
                "Add what is missing, or rename the files so that they pair (the extension may differ).",
            )
        pairs += [Pair(images[stem], masks[stem]) for stem in images]
        if split:
            given[split] = (start, len(pairs))
    return pairs, given


def _by_stem(folder: Path, left: Leftovers) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in image_files(folder, left):
        if file.stem in found:
            raise UserError(
                "one file for each name",
                f"{found[file.stem]} and {file.name}",
                "Rename or remove one of the two.",
            )
        found[file.stem] = file
    return found
