"""A folder of images, each with a class or a mask, in any layout.

All faults of a set are collected in one error, so that users can repair a folder in one pass. Damage is found
only by reading whole files, so all files are read if a header fails or `skip_bad` is set.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.decode import DamagedFile, read_header, read_mask, read_pixels
from scalestudy.data.images.form import Fit, Form, common_form, describe_headers, widen
from scalestudy.data.images.masks import MASKS_TRIED, Mask, MaskFile, MaskValues, holds_indices
from scalestudy.data.images.tiff import Header
from scalestudy.data.samples import IGNORE, Array, Kind, Sample, Size
from scalestudy.data.sources.files import DAMAGED, READ_SUFFIXES, Leftovers, several
from scalestudy.data.sources.listing import ListedSample, Listing
from scalestudy.data.sources.source import (
    Contents,
    Item,
    Outcome,
    SourceFindings,
    files_digest,
    require_classes,
    require_two,
    side_by_side,
)
from scalestudy.util.errors import UserError

SHOWN = 5
"""Number of faults named in a message if all have the same reason."""
SHOWN_OF_REASON = 3
"""Number of faults named for each of several reasons."""


class Refused(UserError):
    """Several faults as one error: the number of each reason, and the first of them by name."""

    def __init__(self, errors: Sequence[UserError]) -> None:
        self.errors = tuple(errors)
        by_reason: dict[str, list[str]] = {}
        for error in errors:
            reason = str(getattr(error, "reason", f"against: {error.expected}"))
            by_reason.setdefault(reason, []).append(str(getattr(error, "path", error.received)))
        if len(by_reason) == 1:
            received = several([error.received for error in errors], SHOWN, between="; ")
        else:
            parts = [
                f"{len(names)} {reason} ({several(names, SHOWN_OF_REASON, between='; ')})"
                for reason, names in by_reason.items()
            ]
            received = f"{len(errors)} that are refused: {'; '.join(parts)}"
        super().__init__(errors[0].expected, received, errors[0].action)


def all_or_refused(function: Callable[[Item], Outcome], items: Sequence[Item]) -> Iterator[Outcome]:
    """Yield `function(item)` in order, without items for which it raises UserError.

    Raises:
        Refused: After the last item, with all errors.
    """

    def outcome_of(item: Item) -> Outcome | UserError:
        try:
            return function(item)
        except UserError as error:
            return error

    refused: list[UserError] = []
    for outcome in side_by_side(outcome_of, items):
        if isinstance(outcome, UserError):
            refused.append(outcome)
        else:
            yield outcome
    if refused:
        raise Refused(refused)


def damage(read: Callable[[Path], Any], files: Iterable[Path]) -> list[DamagedFile]:
    """Return the damaged ones among these files. Each image is read completely once; other files are not."""

    def fault(file: Path) -> DamagedFile | None:
        try:
            read(file)
        except DamagedFile as error:
            return error
        except UserError:
            pass  # It is not damaged; other errors are raised when it is used.
        return None

    images = [file for file in dict.fromkeys(files) if file.suffix.lower() in READ_SUFFIXES]
    return [error for error in side_by_side(fault, images) if error is not None]


def sift(listing: Listing, read: Callable[[Path], Any]) -> tuple[Listing, list[DamagedFile]]:
    """Return the samples without damaged files, and the damaged files; `read` reads a whole file.

    Raises:
        UserError: If a class or a split has no sample left.
    """
    samples = listing.samples
    damaged = damage(read, (file for sample in samples for file in sample.files))
    bad = {error.path for error in damaged}
    rows = [row for row, sample in enumerate(samples) if bad.isdisjoint(sample.files)]
    left = [samples[row] for row in rows]
    given = {
        split: (sum(row < start for row in rows), sum(row < stop for row in rows))
        for split, (start, stop) in listing.given.items()
    }
    emptied = [f"split {split}" for split, (start, stop) in given.items() if start == stop]
    if listing.kind == "classes":
        classes = {sample.target for sample in left}
        emptied += [f"class {name}" for name in listing.classes or [] if name not in classes]
    if emptied or not left:
        raise UserError(
            "at least one intact file in every class and split, to skip damaged ones",
            f"{len(samples) - len(left)} of {len(samples)} samples damaged, among them all"
            + (f" of {several(emptied)}" if emptied else ""),
            "Replace damaged files by intact copies. Without skip_bad they are listed.",
        )
    return listing.only(rows, given), damaged


class ImageFolder:
    """Source of the images of a listing, converted to a common form that their headers determine.

    If the pages of stacks are samples, an image has shape [pages, H, W, C] and its mask [pages, H, W].
    """

    def __init__(self, root: Path, data: DataSettings, listing: Listing) -> None:
        self.kind: Kind = listing.kind
        self.label, self.identity = root.name, str(root)
        self._root, self._data, self._listing = root, data, listing
        self._fit = Fit.of(data)
        self._left_out = listing.left_out
        self._damaged: list[DamagedFile] = []
        self._form: Form | None = None
        self._values = MaskValues()
        self._doubtful: set[Path] = set()
        self._facts: list[str] = []
        self._remarks: dict[str, dict[str, None]] = {}
        self._lowest, self._highest = np.inf, -np.inf
        if self.kind == "classes":
            require_classes(listing.classes or [], str(root))
        require_two(len(listing.samples), str(root))
        self._index = {name: index for index, name in enumerate(listing.classes or [])}
        self.fingerprint = files_digest(root, listing.files())

    def contents(self) -> Contents:
        if self._data.skip_bad:
            self._listing, self._damaged = sift(self._listing, self._read_whole)
            left = Leftovers(self._root)
            for error in self._damaged:
                left.add(f"{DAMAGED}: {error.reason}", error.path)
            self._left_out = (*self._left_out, *left.groups())
        samples = self._listing.samples
        headers = self._headers()
        # If EXIF turns a photograph, only its size shows whether its mask was drawn upright.
        self._doubtful = {header.path for header in headers if header.doubtful}
        masks = [sample.target.path for sample in samples if isinstance(sample.target, MaskFile)]
        index_names = self._listing.index_names
        indexed = any(holds_indices(mask, named=bool(index_names)) for mask in masks[:MASKS_TRIED])
        self._values = MaskValues(index_names, indexed)
        self._form = form = common_form(headers, self._data.value_range)
        self._remark_headers(headers, form)
        names = [self._name(sample.image) for sample in samples]
        sizes = [header.size for header in headers]
        masked = self.kind == "masks"
        size = sizes[0] if self._data.tile is not None else self._fit.size or _one_size(headers, masks=masked)
        return Contents(
            count=len(samples),
            input_shape=(*size, form.channels),
            dtype=form.dtype,
            scale=form.scale,
            names=names,
            given=self._listing.given,
            ignore=IGNORE if masked and any(map(self._fit.pads, sizes)) else None,
            groups=self._listing.groups,
            sizes=sizes,
            formats=describe_headers(headers),
            size_counts=[
                (size, count, names[sizes.index(size)]) for size, count in Counter(sizes).most_common()
            ],
            pages=[header.pages for header in headers] if self._data.stack == "samples" else None,
        )

    def rows(self) -> Iterator[Sample]:
        refused: list[UserError] = []
        try:
            for sample, image, target in all_or_refused(self._decode, self._listing.samples):
                if isinstance(target, int):
                    yield image, target
                    continue
                try:
                    # If the layout defines the classes, masks already contain class indices.
                    known = self._listing.classes is not None
                    mask = target if known else self._values.indices(target, str(sample.target))
                except UserError as error:
                    refused.append(error)
                else:
                    yield image, self._fit.mask(mask)
        except Refused as faults:
            refused[:0] = faults.errors
        if refused:
            raise Refused(refused)

    def class_names(self) -> list[str]:
        return self._listing.classes or self._values.class_names()

    def findings(self) -> SourceFindings:
        remarks = [
            *self._facts,
            *(
                f"{len(names)} {'image' if len(names) == 1 else 'images'} {what}: {several(sorted(names))}"
                for what, names in self._remarks.items()
            ),
        ]
        if self._highest >= self._lowest:
            given = self._data.value_range
            how = f"with {given[0]:g} to {given[1]:g} as 0 to 1" if given else "as they are"
            remarks.append(
                f"values are stored as float32 {how}: models see {self._lowest:.4g} to {self._highest:.4g}"
                + ("" if given else "; value_range = [LOW, HIGH] under [data] would scale them")
            )
        understood = "; ".join(filter(None, (self._listing.understood, self._values.meaning())))
        return SourceFindings(self._left_out, tuple(self._damaged), understood, tuple(remarks))

    def _headers(self) -> list[Header]:
        """Read all headers. If one is refused, read all files to report all faults together."""
        samples = self._listing.samples
        try:
            images = [sample.image for sample in samples]
            return list(all_or_refused(lambda path: read_header(path, self._data.stack), images))
        except Refused as refused:
            known = {error.path for error in refused.errors if isinstance(error, DamagedFile)}
            files = [file for sample in samples for file in sample.files if file not in known]
            raise Refused([*refused.errors, *damage(self._read_whole, files)]) from refused

    def _read_whole(self, path: Path) -> None:
        read_pixels(path, self._data.stack)

    def _decode(self, sample: ListedSample) -> tuple[ListedSample, Array, Array | int]:
        image = self._image(sample.image)
        if isinstance(sample.target, str):
            return sample, self._fit.image(image), self._index[sample.target]
        mask = self._mask(sample.target)
        if mask.shape != image.shape[:-1]:
            raise UserError(
                "a mask as large as its image",
                f"{sample.target} of {_shown(mask.shape)} for {sample.image} of {_shown(image.shape[:-1])} "
                "pixels (height x width)",
                "Save the mask at the size of its image"
                + (", with a page for each of its pages." if image.ndim == 4 else "."),
            )
        if sample.image in self._doubtful:
            raise UserError(
                "images stored upright, like their masks",
                f"{sample.image}, which is turned by its EXIF orientation; of {_shown(image.shape[:-1])} "
                f"pixels both ways, {sample.target} may lie either way on it",
                "Save the image upright without that tag, and check that the mask fits.",
            )
        return sample, self._fit.image(image), mask

    def _image(self, path: Path) -> Array:
        """Read an image in the common form and its own size."""
        assert self._form is not None
        pixels = read_pixels(path, self._data.stack)
        if pixels.see_through:
            self._remark("with transparency, which is dropped", path)
        image: Array = self._form.of(pixels.values, str(path))
        if self._form.dtype.kind == "f":
            self._lowest = min(self._lowest, float(image.min()))
            self._highest = max(self._highest, float(image.max()))
        elif self._form.value_range and int(image.max()) > self._form.value_range[1]:
            self._remark("with values above value_range, seen as more than 1", path)
        return image if self._data.stack == "samples" else image[0]

    def _mask(self, mask: Mask) -> Array:
        if self._data.stack is not None and isinstance(mask, MaskFile):
            return read_mask(mask.path, self._data.stack)
        pixels = mask.read()
        return pixels[None] if self._data.stack == "samples" else pixels

    def _remark(self, what: str, path: Path) -> None:
        self._remarks.setdefault(what, {})[self._name(path)] = None

    def _remark_headers(self, headers: Sequence[Header], form: Form) -> None:
        kinds = {(header.dtype, header.channels) for header in headers}
        if kinds not in ({(np.dtype(np.uint8), 1)}, {(np.dtype(np.uint8), 3)}):
            kind = {1: "grey", 3: "colour"}.get(form.channels, f"{form.channels} channels")
            self._facts.append(f"images of {describe_headers(headers)}, stored as {form.dtype} {kind}")
        for header in headers:
            if header.left:
                self._remark("with further pages, which are left out", header.path)
        for header in widen(headers, form):
            self._remark("of 8 bits among 16-bit ones, multiplied by 257", header.path)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


def _one_size(headers: Sequence[Header], *, masks: bool) -> Size:
    first = headers[0]
    other = next((header for header in headers if header.size != first.size), None)
    if other is not None:
        height, width = Counter(header.size for header in headers).most_common(1)[0][0]
        raise UserError(
            "images of one size, or an image_size to resize them to",
            f"{first.path} of {_shown(first.size)} and {other.path} of {_shown(other.size)} pixels "
            "(height x width)",
            f"Add `image_size = [{height}, {width}]` (or a size of your choice) under [data]"
            + (", or `tile` to cut them." if masks else "."),
        )
    return first.size


def _shown(shape: tuple[Any, ...]) -> str:
    pages = f"{shape[0]} page{'s' * (shape[0] > 1)} of " if len(shape) == 3 else ""
    return f"{pages}{shape[-2]} x {shape[-1]}"
