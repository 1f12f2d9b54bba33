"""A folder of images with one class each, in whatever layout."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.data.faults import each_or_refused
from scalestudy.data.folder_images import common_contents
from scalestudy.data.images import read_header, read_image
from scalestudy.data.kinds import Kind
from scalestudy.data.layouts.listing import Listing
from scalestudy.data.resize import resize_image
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
        self._image_size = data.image_size
        self._listing, self.left_out, self.understood = listing, listing.left_out, listing.understood
        self._samples = [LabelledFile(image, target) for image, target in listing.labels()]
        self._names = listing.classes or []
        require_classes(self._names, str(root))
        require_two(len(self._samples), str(root))
        self.fingerprint = files_digest(root, listing.files())
        self._channels = 1

    def contents(self) -> Contents:
        """Shape, depth and order of the samples, from headers alone."""
        headers = list(each_or_refused(read_header, [sample.image for sample in self._samples]))
        names = [sample.image.relative_to(self._root).as_posix() for sample in self._samples]
        contents = common_contents(headers, self._image_size, names, self._listing.given, None)
        self._channels = contents.input_shape[2]
        return replace(contents, groups=self._listing.groups)

    def rows(self) -> Iterator[Sample]:
        """All samples in order."""
        return each_or_refused(self._decode, self._samples)

    def class_names(self) -> list[str]:
        """Names of the classes by index."""
        return self._names

    def _decode(self, sample: LabelledFile) -> Sample:
        image = read_image(sample.image, self._channels)
        return image if self._image_size is None else resize_image(image, self._image_size), sample.target
