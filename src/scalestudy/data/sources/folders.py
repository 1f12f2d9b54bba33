"""A folder of images with one class or one mask each, in whatever layout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.data.images.decode import read_header
from scalestudy.data.images.masks import Mask, MaskValues
from scalestudy.data.images.open import DamagedFile
from scalestudy.data.sources.base import Contents, files_digest, require_classes, require_two
from scalestudy.data.sources.faults import Refused, each_or_refused, headers_or_all_faults, sift, together
from scalestudy.data.sources.folder_images import FolderImages
from scalestudy.data.sources.layouts.listing import Listing
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import IGNORE, Array, Sample
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class LabelledFile:
    """An image and the index of its class."""

    image: Path
    target: int


class FolderClasses:
    """Source of images with one class each."""

    kind: Kind = "classes"

    def __init__(self, root: Path, data: DataSettings, listing: Listing) -> None:
        self.label = root.name
        self.identity = str(root)
        self._root = root
        self._images = FolderImages(root, data)
        self._skip_bad = data.skip_bad
        self.damaged: list[DamagedFile] = []
        self._listing, self.left_out, self.understood = listing, listing.left_out, listing.understood
        self._samples = [LabelledFile(image, target) for image, target in listing.labels()]
        self._names = listing.classes or []
        require_classes(self._names, str(root))
        require_two(len(self._samples), str(root))
        self.fingerprint = files_digest(root, listing.files())

    def contents(self) -> Contents:
        """Shape, depth and order of the samples, from headers alone."""
        if self._skip_bad:
            self._sift()
        images = [sample.image for sample in self._samples]
        headers = headers_or_all_faults(self._images.header, images, self._images.read_whole, images)
        names = [sample.image.relative_to(self._root).as_posix() for sample in self._samples]
        return self._images.contents(headers, names, self._listing.given, None, self._listing.groups)

    def pick(self, rows: Sequence[int]) -> None:
        """Give only these rows from now on."""
        self._samples = [self._samples[row] for row in rows]

    def rows(self) -> Iterator[Sample]:
        """All samples in order."""
        return each_or_refused(self._decode, self._samples)

    def class_names(self) -> list[str]:
        """Names of the classes by index."""
        return self._names

    def remarks(self) -> list[str]:
        """What was done to the images. Called after `rows` is exhausted."""
        return self._images.remarks()

    def _sift(self) -> None:
        files = [(sample.image,) for sample in self._samples]
        classes = [self._names[sample.target] for sample in self._samples]
        sifted = sift(files, self._listing.given, self._images.read_whole, classes)
        self._listing, self.damaged = self._listing.only(sifted.rows, sifted.given), sifted.damaged
        self.pick(sifted.rows)
        self.left_out = (*self.left_out, *sifted.left_out(self._root))

    def _decode(self, sample: LabelledFile) -> Sample:
        return self._images.fit.image(self._images.read(sample.image)), sample.target


@dataclass(frozen=True)
class Pair:
    """An image and its mask."""

    image: Path
    mask: Mask

    @property
    def files(self) -> tuple[Path, ...]:
        """Those of both."""
        return self.image, *self.mask.files


class FolderMasks:
    """Source of images with masks of class indices."""

    kind: Kind = "masks"

    def __init__(self, root: Path, data: DataSettings, listing: Listing) -> None:
        self.label = root.name
        self.identity = str(root)
        self._root = root
        self._images = FolderImages(root, data)
        self._skip_bad = data.skip_bad
        self.damaged: list[DamagedFile] = []
        self._listing, self.left_out = listing, listing.left_out
        self._pairs = [Pair(image, mask) for image, mask in listing.masks()]
        require_two(len(self._pairs), str(root))
        self.fingerprint = files_digest(root, listing.files())
        self.ignored = False
        self._values = MaskValues()
        self._turned: set[Path] = set()

    def contents(self) -> Contents:
        """Shape, depth and order of the samples, from headers alone."""
        if self._skip_bad:
            self._sift()
        images = [pair.image for pair in self._pairs]
        files = [file for pair in self._pairs for file in pair.files]
        headers = headers_or_all_faults(self._images.header, images, self._images.read_whole, files)
        self._turned = {header.path for header in headers if header.turned}
        names = [pair.image.relative_to(self._root).as_posix() for pair in self._pairs]
        return self._images.contents(headers, names, self._listing.given, IGNORE, self._listing.groups)

    def pick(self, rows: Sequence[int]) -> None:
        """Give only these rows from now on."""
        self._pairs = [self._pairs[row] for row in rows]

    def rows(self) -> Iterator[Sample]:
        """All samples in order."""
        refused: list[UserError] = []
        try:
            for pair, image, mask in each_or_refused(self._decode, self._pairs):
                try:
                    indices: Array = self._indices(mask, pair)
                except UserError as error:
                    refused.append(error)
                else:
                    self.ignored = self.ignored or bool((indices == IGNORE).any())
                    yield image, self._images.fit.mask(indices)
        except Refused as faults:
            refused[:0] = faults.errors
        if refused:
            raise together(refused)

    def class_names(self) -> list[str]:
        """Names of the classes by index."""
        return self._listing.classes or self._values.class_names()

    @property
    def understood(self) -> str:
        """How the folder is laid out, and after `rows` what the values of the masks mean; in words."""
        sentences = (self._listing.understood, self._listing.known_after(), self._values.meaning())
        return "; ".join(filter(None, sentences))

    def remarks(self) -> list[str]:
        """What was done to the images. Called after `rows` is exhausted."""
        return self._images.remarks()

    def _sift(self) -> None:
        sifted = sift([pair.files for pair in self._pairs], self._listing.given, self._images.read_whole)
        self._listing, self.damaged = self._listing.only(sifted.rows, sifted.given), sifted.damaged
        self.pick(sifted.rows)
        self.left_out = (*self.left_out, *sifted.left_out(self._root))

    def _indices(self, mask: Array, pair: Pair) -> Array:
        # Masks of a layout that knows its classes hold their indices already.
        return self._values.indices(mask, str(pair.mask)) if self._listing.classes is None else mask

    def _decode(self, pair: Pair) -> tuple[Pair, Array, Array]:
        image = self._images.read(pair.image)
        mask = self._images.read_mask(pair.mask, image)
        if mask.shape != image.shape[:-1]:
            raise UserError(
                "a mask of the size of its image",
                f"{pair.mask} of {_shown(mask.shape)} for {pair.image} of {_shown(image.shape[:-1])} pixels "
                "(height x width)",
                "Save the mask at the size of its image"
                + (", with a page for each of its pages." if image.ndim == 4 else "."),
            )
        if pair.image in self._turned:
            self._refuse_doubt(pair, mask.shape[-2:])
        return pair, self._images.fit.image(image), mask

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


def _shown(shape: tuple[int, ...]) -> str:
    pages = f"{shape[0]} page{'s' * (shape[0] > 1)} of " if len(shape) == 3 else ""
    return f"{pages}{shape[-2]} x {shape[-1]}"
