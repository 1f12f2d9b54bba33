"""What all folders of images share: one size, one type and one number of channels for a set."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.images.decode import Header, read_header, read_mask, read_pixels
from scalestudy.data.images.form import Form, common_form, described, widened
from scalestudy.data.images.masks import Mask, MaskFile
from scalestudy.data.images.resize import Fit
from scalestudy.data.sources.base import Contents
from scalestudy.data.sources.remarks import Remarks
from scalestudy.data.types import Ranges, Size
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

Array = npt.NDArray[Any]


class FolderImages:
    """Reads the files of a set: headers first, then each in the form that all have in common.

    Where the pages of a stack are samples, an image has shape [pages, H, W, C] and its mask [pages, H, W].
    """

    def __init__(self, root: Path, data: DataSettings) -> None:
        self.fit = Fit.of(data)
        self._root, self._data = root, data
        self._form: Form | None = None
        self._remarks = Remarks()
        self._facts: list[str] = []
        self._lowest, self._highest = np.inf, -np.inf

    def header(self, path: Path) -> Header:
        """Size, type and channels of a file; see `read_header`."""
        return read_header(path, self._data.stack)

    def read_whole(self, path: Path) -> None:
        """Decode all of a file, an image's or a mask's, to no avail but its errors."""
        read_pixels(path, self._data.stack)

    def contents(
        self,
        headers: Sequence[Header],
        names: list[str],
        given: Ranges,
        ignore: int | None,
        groups: list[str] | None = None,
    ) -> Contents:
        """The one shape and type of all images; `ignore` is kept only if fitting pads some of them.

        Raises:
            UserError: sizes differ and nothing says what to do, or types or channels do.
        """
        self._form = form = common_form(headers, self._data.value_range)
        cut = self._data.tile is not None
        size = headers[0].size if cut else self.fit.size or _one_size(headers, masks=ignore is not None)
        self._remark(headers, form)
        return Contents(
            count=len(headers),
            input_shape=(*size, form.channels),
            dtype=form.dtype,
            scale=form.scale,
            names=names,
            given=given,
            ignore=ignore if any(self.fit.pads(header.size) for header in headers) else None,
            groups=groups,
            sizes=[header.size for header in headers],
            formats=described(headers),
            size_counts=_size_counts(headers, names),
            pages=[header.pages for header in headers] if self._data.stack == "samples" else None,
        )

    def read(self, path: Path) -> Array:
        """An image of the set's form, in its own size. Called after `contents`.

        Raises:
            UserError: it is damaged.
        """
        assert self._form is not None
        pixels = read_pixels(path, self._data.stack)
        name = path.relative_to(self._root).as_posix()
        if pixels.see_through:
            self._remarks.add("with transparency, which is dropped", name)
        image = self._form.of(pixels.values, str(path))
        if self._form.dtype.kind == "f":
            self._lowest = min(self._lowest, float(image.min()))
            self._highest = max(self._highest, float(image.max()))
        elif self._form.value_range and int(image.max()) > self._form.value_range[1]:
            self._remarks.add("with values above value_range, seen as more than 1", name)
        return image if self._data.stack == "samples" else image[0]

    def read_mask(self, mask: Mask, image: Array) -> Array:
        """The mask of this image as `read` gave it, in the values that are stored.

        Raises:
            UserError: it is damaged.
        """
        if self._data.stack is not None and isinstance(mask, MaskFile):
            return read_mask(mask.path, self._data.stack)
        pixels = mask.read((image.shape[-3], image.shape[-2]))
        return pixels[None] if self._data.stack == "samples" else pixels

    def remarks(self) -> list[str]:
        """What was done to the images, in sentences. Called after all are read."""
        sentences = [*self._facts, *self._remarks.sentences()]
        if self._highest >= self._lowest:
            given = self._data.value_range
            how = f"with {given[0]:g} to {given[1]:g} as 0 to 1" if given else "as they are"
            sentences.append(
                f"values are stored as float32 {how}: models see {self._lowest:.4g} to {self._highest:.4g}"
                + ("" if given else "; value_range = [LOW, HIGH] under [data] would scale them")
            )
        return sentences

    def _remark(self, headers: Sequence[Header], form: Form) -> None:
        kinds = {(header.dtype, header.channels) for header in headers}
        if kinds != {(np.dtype(np.uint8), 1)} and kinds != {(np.dtype(np.uint8), 3)}:
            kind = {1: "grey", 3: "colour"}.get(form.channels, f"{form.channels} channels")
            self._facts.append(f"images of {described(headers)}, stored as {form.dtype} {kind}")
        for header in headers:
            if header.left:
                name = header.path.relative_to(self._root).as_posix()
                self._remarks.add("with further pages, which are left out", name)
        for header in widened(headers, form):
            name = header.path.relative_to(self._root).as_posix()
            self._remarks.add("of 8 bits among 16-bit ones, multiplied by 257", name)


def _size_counts(headers: Sequence[Header], names: Sequence[str]) -> list[tuple[Size, int, str]]:
    first: dict[Size, str] = {}
    for header, name in zip(headers, names, strict=True):
        first.setdefault(header.size, name)
    counts = Counter(header.size for header in headers)
    return [(size, count, first[size]) for size, count in counts.most_common()]


def _one_size(headers: Sequence[Header], *, masks: bool) -> Size:
    first = headers[0]
    for header in headers:
        if header.size != first.size:
            height, width = Counter(header.size for header in headers).most_common(1)[0][0]
            raise UserError(
                "images of one size, or an image_size to fit them to",
                f"{first.path} of {_shown(first.size)} and {header.path} of {_shown(header.size)} "
                "pixels (height x width)",
                f"Add `image_size = [{height}, {width}]` (or a size of your choice) under [data]"
                + (", or `tile` to cut them." if masks else "."),
            )
    return first.size


def _shown(size: Size) -> str:
    return f"{size[0]} x {size[1]}"
