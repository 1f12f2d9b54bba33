"""A folder of images with one class each, in whatever layout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.data.damaged import headers_or_all_faults, sift
from scalestudy.data.faults import each_or_refused
from scalestudy.data.folder_images import FolderImages
from scalestudy.data.kinds import Kind
from scalestudy.data.layouts.find import Listing
from scalestudy.data.open_image import DamagedFile
from scalestudy.data.source import (
    Contents,
    Sample,
    files_digest,
    require_classes,
    require_two,
)
from scalestudy.study.settings import DataSettings


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
