"""A folder of images, each with a class or a mask, in any layout.

All faults of a set are collected in one error, so that users can repair a folder in one pass.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.decode import (
    ColouredMaskError,
    Header,
    read_header,
    read_mask,
    read_pixels,
)
from scalestudy.data.images.form import Fit, Form, common_form, describe_headers
from scalestudy.data.images.masks import (
    MASKS_TRIED,
    NUMBERED,
    Colours,
    MaskValues,
    ObjectMasks,
    StrangeColoursError,
    colours_to_name,
    holds_indices,
    refuse_coloured,
)
from scalestudy.data.samples import IGNORE, Array, Kind, Sample, Size
from scalestudy.data.sources.files import ListedSample
from scalestudy.data.sources.labels import hold_decimals
from scalestudy.data.sources.layouts import Listing
from scalestudy.data.sources.source import (
    Contents,
    Doubt,
    Item,
    Outcome,
    SourceFindings,
    files_digest,
    refuse_unused,
    require_classes,
    require_two,
    side_by_side,
)
from scalestudy.util.errors import UserError
from scalestudy.util.text import join_first

SHOWN = 50
"""Number of faults named in a message."""


def all_or_refused(
    function: Callable[[Item], Outcome],
    items: Sequence[Item],
    then: Callable[[Outcome], Any] = lambda _: _,
) -> Iterator[Any]:
    """Yield `then(function(item))` in order, without items for which either raises UserError.

    Several threads call `function`, only the caller's calls `then`.

    Raises:
        UserError: After the last item, with all errors that expected the same as the first one.
    """

    def outcome_of(item: Item) -> Outcome | UserError:
        try:
            return function(item)
        except UserError as error:
            # Returned, since one that is raised would end the reading of all others.
            return error

    refused: list[UserError] = []
    for outcome in side_by_side(outcome_of, items):
        try:
            if isinstance(outcome, UserError):
                raise outcome
            yield then(outcome)
        except UserError as error:
            refused.append(error)
    if refused:
        raise _joined(refused)


def _joined(errors: Sequence[UserError]) -> UserError:
    coloured: list[Path] = []
    strange: dict[Path, Counter[int]] = {}
    classes = 0
    for error in errors:
        if isinstance(error, ColouredMaskError):
            coloured.append(error.path)
        elif isinstance(error, StrangeColoursError):
            strange |= error.pixels
            classes = error.classes
    # All together, so that the line to paste has the colours of several masks.
    if coloured:
        return colours_to_name(coloured)
    if strange:
        return StrangeColoursError(strange, classes)
    first = errors[0]
    alike = [error.received for error in errors if error.expected == first.expected]
    received = join_first(alike, SHOWN, separator="; ")
    others = len(errors) - len(alike)
    if others:
        received += f"; and {others} files with other faults"
    return UserError(first.expected, received, first.action)


class ImageFolder:
    """Source of the images of a listing, converted to a common form that their headers determine."""

    def __init__(
        self,
        root: Path,
        data: DataSettings,
        listing: Listing,
    ) -> None:
        self.kind: Kind = listing.kind
        self.label = root.name
        self.identity = str(root)
        self._root = root
        self._data = data
        self._listing = listing
        self._fit = Fit.of(data)
        self._form: Form | None = None
        self._values = MaskValues()
        self._doubtful: set[Path] = set()
        self._remarks: list[str] = []
        self._lowest = np.inf
        self._highest = -np.inf
        if self.kind == "classes":
            require_classes(listing.classes, str(root))
        require_two(len(listing.samples), str(root))
        self._colours = None
        if data.colours and self.kind == "masks":
            self._colours = Colours(data.colours)
        # Masks of single objects are binary: no colour in them tells a class.
        if any(isinstance(sample.target, ObjectMasks) for sample in listing.samples):
            refuse_unused(data, ("colours",), "a mask for each object")
        names = listing.classes
        if self._colours:
            names = self._colours.names
        self.known_classes = len(names) or None
        self._index = {name: index for index, name in enumerate(listing.classes)}
        self.fingerprint = files_digest(root, listing.files())

    def contents(self) -> Contents:
        samples = self._listing.samples
        images = [sample.image for sample in samples]
        headers: list[Header] = list(all_or_refused(read_header, images))
        # If EXIF turns a photograph, only its size shows whether its mask was drawn upright.
        self._doubtful = {header.path for header in headers if header.doubtful}
        masks = [sample.target for sample in samples if isinstance(sample.target, Path)]
        indexed = any(map(holds_indices, masks[:MASKS_TRIED]))
        self._values = MaskValues(indexed=indexed)
        if not self._colours:
            # Here, on a few masks, rather than after hours of decoding.
            refuse_coloured(masks)
        form = common_form(headers, self._data.value_range)
        self._form = form
        formats = describe_headers(headers)
        # 8-bit images alone, grey or coloured, are what everybody expects: no remark.
        kinds = {(header.dtype, header.channels) for header in headers}
        grey = (np.dtype(np.uint8), 1)
        coloured = (np.dtype(np.uint8), 3)
        if kinds not in ({grey}, {coloured}):
            words = {1: "grey", 3: "colour"}
            kind = words.get(form.channels, f"{form.channels} channels")
            self._remarks.append(f"images of {formats}, stored as {form.dtype} {kind}")
        names = [image.relative_to(self._root).as_posix() for image in images]
        sizes = [header.size for header in headers]
        size = self._fit.size
        if size is None and self._data.tile:
            # Images that are cut into tiles may differ in size.
            size = sizes[0]
        elif size is None:
            size = self._one_size(headers)
        pads = self.kind == "masks" and any(map(self._fit.pads, sizes))
        return Contents(
            count=len(samples),
            input_shape=(*size, form.channels),
            dtype=form.dtype,
            scale=form.scale,
            names=names,
            given=self._listing.given,
            # What is padded belongs to no class.
            ignore=IGNORE if pads else None,
            groups=self._listing.groups,
            sizes=sizes,
            formats=formats,
        )

    def rows(self) -> Iterator[Sample]:
        return all_or_refused(self._decode, self._listing.samples, self._sample)

    def class_names(self) -> list[str]:
        if self._colours:
            return self._colours.names
        return self._listing.classes or self._values.class_names()

    def findings(self) -> SourceFindings:
        remarks = list(self._remarks)
        if self._highest >= self._lowest:
            how = "as they are"
            hint = "; value_range = [LOW, HIGH] under [data] would scale them"
            if self._data.value_range:
                low, high = self._data.value_range
                how = f"with {low:g} to {high:g} as 0 to 1"
                hint = ""
            remarks.append(
                f"values are stored as float32 {how}: models see {self._lowest:.4g} to {self._highest:.4g}{hint}"
            )
        meaning = self._values.meaning()
        if self._colours:
            meaning = f"masks of the {len(self._colours.names)} `colours`"
        understood = filter(None, (self._listing.understood, meaning))
        return SourceFindings(
            self._listing.left_out,
            "; ".join(understood),
            tuple(remarks),
            tuple(self._doubts()),
        )

    def _doubts(self) -> Iterator[Doubt]:
        if self._values.number_objects():
            yield Doubt(
                "object-numbers",
                "The masks look like numbers of objects, not of classes: other values in each, without gaps",
                f"Trained on, object 1 of every image would be one class. {NUMBERED}",
            )
        if self._listing.table and hold_decimals(self._listing.classes):
            yield Doubt(
                "decimal-classes",
                f"{len(self._listing.classes):,} classes of {len(self._listing.samples):,} images that are "
                f"numbers with decimals, such as {self._listing.classes[0]}",
                "If they are measured values, name a column of classes (`label_column` under [data]), or "
                "write `read(data)` in a task file, whose targets may be numbers.",
            )

    def _sample(self, decoded: tuple[ListedSample, Array, Array | int]) -> Sample:
        sample, image, target = decoded
        if isinstance(target, int):
            return image, target
        if not self._colours:
            target = self._values.indices(target, str(sample.target))
        return image, self._fit.mask(target)

    def _decode(self, sample: ListedSample) -> tuple[ListedSample, Array, Array | int]:
        image = self._image(sample.image)
        target = sample.target
        if isinstance(target, str):
            return sample, self._fit.image(image), self._index[target]
        mask = self._mask(target)
        size = image.shape[:2]
        if mask.shape != size:
            raise UserError(
                "a mask as large as its image",
                f"{target} of {_shown(mask.shape)} for {sample.image} of {_shown(size)} "
                "pixels (height x width)",
                "Save the mask at the size of its image.",
            )
        if sample.image in self._doubtful:
            raise UserError(
                "images stored upright, like their masks",
                f"{sample.image}, which is turned by its EXIF orientation; of {_shown(size)} "
                f"pixels both ways, {target} may lie either way on it",
                "Save the image upright without that tag, and check that the mask fits.",
            )
        return sample, self._fit.image(image), mask

    def _mask(self, target: Path | ObjectMasks) -> Array:
        if isinstance(target, ObjectMasks):
            return target.read()
        if self._colours:
            return self._colours.read(target)
        return read_mask(target)

    def _image(self, path: Path) -> Array:
        """Read an image in the common form and its own size."""
        assert self._form is not None
        image = self._form.of(read_pixels(path), str(path))
        if self._form.dtype.kind == "f":
            self._lowest = min(self._lowest, float(image.min()))
            self._highest = max(self._highest, float(image.max()))
        return image

    def _one_size(self, headers: Sequence[Header]) -> Size:
        first_of: dict[Size, Header] = {}
        for header in headers:
            first_of.setdefault(header.size, header)
        first, *others = first_of.values()
        if not others:
            return first.size
        other = others[0]
        # The most frequent size leaves most images as they are.
        counts = Counter(header.size for header in headers)
        [((height, width), _)] = counts.most_common(1)
        action = f"Add `image_size = [{height}, {width}]` (or a size of your choice) under [data]"
        if self.kind == "masks":
            action += ", or `tile` to cut them"
        raise UserError(
            "images of one size, or an image_size to resize them to",
            f"{first.path} of {_shown(first.size)} and {other.path} of {_shown(other.size)} pixels "
            "(height x width)",
            f"{action}.",
        )


def _shown(size: tuple[Any, ...]) -> str:
    height, width = size
    return f"{height} x {width}"
