"""A folder with one folder of images for each class; optionally inside train/, val/ and test/."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.data import layout
from scalestudy.data.faults import each_or_refused
from scalestudy.data.files_in import image_files
from scalestudy.data.folder_images import FolderImages
from scalestudy.data.kinds import Kind
from scalestudy.data.left_out import Leftovers
from scalestudy.data.source import (
    Contents,
    Ranges,
    Sample,
    files_digest,
    require_classes,
    require_two,
)
from scalestudy.errors import UserError
from scalestudy.study.settings import DataSettings


@dataclass(frozen=True)
class LabelledFile:
    """An image and the index of its class."""

    image: Path
    target: int


class FolderClasses:
    """Source of images with one class each, named by the folder that they lie in."""

    kind: Kind = "classes"

    def __init__(self, root: Path, data: DataSettings) -> None:
        self.label = root.name
        self.identity = str(root)
        self._root = root
        self._images = FolderImages(root, data)
        left = Leftovers(root)
        self._samples, self._names, self._given = find_samples(root, left)
        self.left_out = left.found()
        require_classes(self._names, str(root))
        require_two(len(self._samples), str(root))
        self.fingerprint = files_digest(root, (sample.image for sample in self._samples))

    def contents(self) -> Contents:
        """Shape, depth and order of the samples, from headers alone."""
        headers = list(each_or_refused(self._images.header, [sample.image for sample in self._samples]))
        names = [sample.image.relative_to(self._root).as_posix() for sample in self._samples]
        return self._images.contents(headers, names, self._given, None)

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

    def _decode(self, sample: LabelledFile) -> Sample:
        image = self._images.read(sample.image)
        return self._images.fit.image(image), sample.target


def find_samples(root: Path, left: Leftovers) -> tuple[list[LabelledFile], list[str], Ranges]:
    """All samples in order of split, class and name; the classes (as in train/); the rows of each split.

    `left` is told what is left out.

    Raises:
        UserError: a class folder without images, or a class that train/ does not have.
    """
    samples: list[LabelledFile] = []
    given: Ranges = {}
    names: list[str] = []
    parts = layout.parts(root)
    if "" not in parts:
        layout.leave_others(root, parts.values(), left)
    for split, folder in parts.items():
        start = len(samples)
        classes = layout.subfolders(folder)
        layout.leave_others(folder, classes, left)
        names = names or [entry.name for entry in classes]
        for entry in classes:
            if entry.name not in names:
                raise UserError(
                    f"the classes of train/ ({', '.join(names)})",
                    f"{entry}",
                    "Rename it, or add that class to train/.",
                )
            target = names.index(entry.name)
            samples += [LabelledFile(image, target) for image in image_files(entry, left)]
        if split:
            given[split] = (start, len(samples))
    return samples, names, given
