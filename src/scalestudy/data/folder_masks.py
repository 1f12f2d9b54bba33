"""A folder of images with a mask each, in whatever layout."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.data.faults import each_or_refused, together
from scalestudy.data.folder_images import common_contents
from scalestudy.data.images import read_header, read_image
from scalestudy.data.kinds import Kind
from scalestudy.data.layouts.listing import Listing
from scalestudy.data.mask_values import MaskValues
from scalestudy.data.masks import Mask
from scalestudy.data.resize import resize_image, resize_mask
from scalestudy.data.source import (
    IGNORE,
    Array,
    Contents,
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
    mask: Mask


class FolderMasks:
    """Source of images with masks of class indices."""

    kind: Kind = "masks"

    def __init__(self, root: Path, data: DataSettings, listing: Listing) -> None:
        self.label = root.name
        self.identity = str(root)
        self._root = root
        self._image_size = data.image_size
        self._listing, self.left_out = listing, listing.left_out
        self._pairs = [Pair(image, mask) for image, mask in listing.masks()]
        require_two(len(self._pairs), str(root))
        self.fingerprint = files_digest(root, listing.files())
        self.ignored = False
        self._values = MaskValues()
        self._channels = 1
        self._turned: set[Path] = set()

    def contents(self) -> Contents:
        """Shape, depth and order of the samples, from headers alone."""
        headers = list(each_or_refused(read_header, [pair.image for pair in self._pairs]))
        self._turned = {header.path for header in headers if header.turned}
        names = [pair.image.relative_to(self._root).as_posix() for pair in self._pairs]
        contents = common_contents(headers, self._image_size, names, self._listing.given, IGNORE)
        self._channels = contents.input_shape[2]
        return replace(contents, groups=self._listing.groups)

    def rows(self) -> Iterator[Sample]:
        """All samples in order."""
        refused: list[UserError] = []
        for pair, image, mask in each_or_refused(self._decode, self._pairs):
            try:
                indices: Array = self._indices(mask, pair)
            except UserError as error:
                refused.append(error)
            else:
                self.ignored = self.ignored or bool((indices == IGNORE).any())
                yield image, indices if self._image_size is None else resize_mask(indices, self._image_size)
        if refused:
            raise together(refused)

    def class_names(self) -> list[str]:
        """Names of the classes by index."""
        return self._listing.classes or self._values.class_names()

    @property
    def understood(self) -> str:
        """How the folder is laid out, and after `rows` what the values of the masks mean; in words."""
        told = (self._listing.understood, self._listing.told_after(), self._values.told())
        return "; ".join(filter(None, told))

    def _indices(self, mask: Array, pair: Pair) -> Array:
        # Masks of a layout that knows its classes hold their indices already.
        return self._values.indices(mask, str(pair.mask)) if self._listing.classes is None else mask

    def _decode(self, pair: Pair) -> tuple[Pair, Array, Array]:
        image = read_image(pair.image, self._channels)
        mask = pair.mask.read((image.shape[0], image.shape[1]))
        if mask.shape != image.shape[:2]:
            raise UserError(
                "a mask of the size of its image",
                f"{pair.mask} of {mask.shape[0]} x {mask.shape[1]} for {pair.image} of "
                f"{image.shape[0]} x {image.shape[1]} pixels (height x width)",
                "Save the mask at the size of its image.",
            )
        if pair.image in self._turned:
            self._refuse_doubt(pair, mask.shape)
        return pair, image if self._image_size is None else resize_image(image, self._image_size), mask

    def _refuse_doubt(self, pair: Pair, size: tuple[int, ...]) -> None:
        """Of a photograph turned by its EXIF data, only the sizes tell whether its mask was drawn upright."""
        header = read_header(pair.image)
        if header.size == header.stored and not pair.mask.turned():
            raise UserError(
                "images that are stored upright, as their masks are",
                f"{pair.image}, which is turned by its EXIF orientation, while {pair.mask} is not; "
                f"of {size[0]} x {size[1]} pixels both ways, it may lie either way on its image",
                "Save the image upright without that tag, and see that the mask lies on it.",
            )
