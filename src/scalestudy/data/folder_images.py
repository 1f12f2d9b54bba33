"""What the two kinds of image folders share: one size, one depth and one number of channels for a set."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from scalestudy.data.images import Header
from scalestudy.data.resize import Fit
from scalestudy.data.source import Contents, Ranges, Size
from scalestudy.errors import UserError


def common_contents(
    headers: Sequence[Header], fit: Fit, names: list[str], given: Ranges, ignore: int | None
) -> Contents:
    """The one shape and depth of all images; `ignore` is kept only if resizing pads some of them.

    Raises:
        UserError: sizes differ and no size to fit them to says what to do, or 8 and 16 bits are mixed.
    """
    depth = _one_depth(headers)
    size = fit.size or _one_size(headers)
    padded = any(fit.pads(header.size) for header in headers)
    channels = 3 if any(header.colour for header in headers) else 1
    return Contents(
        count=len(headers),
        input_shape=(*size, channels),
        dtype=np.dtype(np.uint8 if depth == 8 else np.uint16),
        scale=1 / 255 if depth == 8 else 1 / 65535,
        names=names,
        given=given,
        ignore=ignore if padded else None,
    )


def _one_depth(headers: Sequence[Header]) -> int:
    first = headers[0]
    for header in headers:
        if header.depth != first.depth:
            raise UserError(
                "images of one depth",
                f"{first.path} with {first.depth} bits and {header.path} with {header.depth}",
                "Convert all images to 16-bit grey, or all to 8 bits.",
            )
    return first.depth


def _one_size(headers: Sequence[Header]) -> Size:
    first = headers[0]
    for header in headers:
        if header.size != first.size:
            height, width = Counter(header.size for header in headers).most_common(1)[0][0]
            raise UserError(
                "images of one size, or an image_size to fit them to",
                f"{first.path} of {_shown(first.size)} and {header.path} of {_shown(header.size)} "
                "pixels (height x width)",
                f"Add `image_size = [{height}, {width}]` (or a size of your choice) under [data].",
            )
    return first.size


def _shown(size: Size) -> str:
    return f"{size[0]} x {size[1]}"
