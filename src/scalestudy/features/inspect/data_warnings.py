"""What of a set may be a mistake, and what to do about it. Pure."""

from collections.abc import Callable, Sequence

import numpy as np

from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Size
from scalestudy.features.inspect import fingerprints
from scalestudy.features.inspect.seen import Seen, labelled
from scalestudy.features.inspect.shown import ClassCount, Finding

FEW = 10
"""Samples below which a class is called small."""
UNEVEN = 10.0
"""How many times larger the largest class is than the smallest where they are called uneven."""
RARE = 0.01
"""Share of the pixels below which a class is called rare."""
MOST_COMPARED = 100_000
"""Samples that are compared each with each."""
UNUSUAL = 3.0
"""How many times larger or smaller than the median a height or width is that is called unusual."""


def findings(
    seen: Seen,
    kind: Kind,
    classes: Sequence[ClassCount],
    sizes: Sequence[tuple[Size, int, str]],
    on_progress: Callable[[int, int | None], None] | None = None,
) -> list[Finding]:
    """All that was found, the serious ones first."""
    found = [*_repeated(seen, kind), *_near(seen, on_progress), *_empty(seen, kind), *_constant(seen)]
    found += [*_sizes(sizes), *_small(classes, kind, seen), *_uneven(classes, kind)]
    return sorted(found, key=lambda each: not each.serious)


def _repeated(seen: Seen, kind: Kind) -> list[Finding]:
    across, within, torn = [], [], []
    for rows in fingerprints.same(seen.digests):
        names = _joined(seen, rows)
        differing = len({seen.pixels[row].tobytes() for row in rows}) > 1
        if differing:
            torn.append(names)
        if len({seen.splits[row] for row in rows}) > 1:
            across.append(names)
        elif not differing and not _one_group(seen, rows):
            within.append(names)
    one, other = ("mask", "masks") if kind == "masks" else ("class", "classes")
    return [
        *_finding(
            across, "image|images in more than one split, pixel for pixel",
            "Quality would be measured on what was trained on: remove the copies, or keep them together as a "
            "group.", serious=True,
        ),
        *_finding(
            torn, f"image|images more than once, pixel for pixel, with different {other}",
            f"One {one} must be wrong: look at them.", serious=True,
        ),
        *_finding(
            within, "image|images more than once in one split, pixel for pixel",
            "Remove the copies, which count more than others; a split made anew may part them.",
        ),
    ]  # fmt: skip


def _near(seen: Seen, on_progress: Callable[[int, int | None], None] | None) -> list[Finding]:
    rows = [row for row in range(seen.count) if seen.sides[row] >= fingerprints.SMALLEST][:MOST_COMPARED]
    if not rows:
        return []
    hashes, thumbs = (
        np.array([seen.hashes[row] for row in rows], np.uint64),
        [seen.thumbs[row] for row in rows],
    )
    near = fingerprints.near(hashes, np.stack(thumbs), on_progress)
    pairs = [
        (rows[one], rows[other])
        for one, other in near
        if seen.digests[rows[one]] != seen.digests[rows[other]]
        and not _one_group(seen, (rows[one], rows[other]))
    ]
    across = [_joined(seen, pair, " ~ ") for pair in pairs if seen.splits[pair[0]] != seen.splits[pair[1]]]
    within = [_joined(seen, pair, " ~ ") for pair in pairs if seen.splits[pair[0]] == seen.splits[pair[1]]]
    return [
        *_finding(
            across, "pair|pairs of images that are nearly the same in different splits",
            "Look at them: frames of one film, crops of one image and copies saved anew belong on one side. "
            "Groups keep them there.", serious=True,
        ),
        *_finding(
            within, "pair|pairs of images that are nearly the same in one split",
            "Look at them: if they show the same thing, a split made anew may part them.",
        ),
    ]  # fmt: skip


def _empty(seen: Seen, kind: Kind) -> list[Finding]:
    if kind != "masks":
        return []
    counts = seen.of_classes
    ignored = counts[:, :255].sum(axis=1) == 0
    empty = ~labelled(counts) & ~ignored
    return [
        *_finding(
            _named(seen, empty), "mask|masks without any labelled pixel",
            "Right where there is nothing to see; otherwise the mask is missing or was saved empty.",
        ),
        *_finding(
            _named(seen, ignored), "mask|masks in which no pixel counts", "Remove them with their images."
        ),
    ]  # fmt: skip


def _constant(seen: Seen) -> list[Finding]:
    constant = np.array(seen.lowest) == np.array(seen.highest)
    return _finding(
        _named(seen, constant), "image|images of a single value",
        "Nothing can be learnt from them: an exposure that failed, or a file that was saved empty?",
    )  # fmt: skip


def _sizes(sizes: Sequence[tuple[Size, int, str]]) -> list[Finding]:
    if not sizes:
        return []
    repeated = np.repeat(np.array([size for size, _, _ in sizes]), [count for _, count, _ in sizes], axis=0)
    median = np.median(repeated, axis=0)
    odd = [
        f"{first} ({size[0]} x {size[1]}{f', {count} of them' if count > 1 else ''})"
        for size, count, first in sizes
        if (np.maximum(size / median, median / size) > UNUSUAL).any()
    ]
    return _finding(
        odd, f"size|sizes far from the usual {median[0]:g} x {median[1]:g} pixels",
        "Thumbnails, or images of another magnification? Leave them out, or see how they look once fitted.",
    )  # fmt: skip


def _small(classes: Sequence[ClassCount], kind: Kind, seen: Seen) -> list[Finding]:
    holds = "in the masks of" if kind == "masks" else "with"
    small = [
        f"{each.name} ({each.samples})"
        for each in classes
        if each.samples < min(FEW, max(2, seen.count // 2))
    ]
    absent = [
        f"{each.name} ({', '.join(split for split, count in each.splits.items() if not count)})"
        for each in classes
        if each.splits and not all(each.splits.values())
    ]
    return [
        *_finding(
            small, f"class|classes {holds} fewer than {FEW} samples",
            "Their quality will be known poorly: add samples, or merge classes.",
        ),
        *_finding(
            absent, "class|classes that a split does not hold",
            "Nothing is learnt or measured of a class there: make the split anew, or add samples.",
        ),
    ]  # fmt: skip


def _uneven(classes: Sequence[ClassCount], kind: Kind) -> list[Finding]:
    shares = [each.share for each in classes if each.share > 0]
    if len(shares) < 2:
        return []
    if kind == "masks":
        rare = [f"{each.name} ({each.share:.2%})" for each in classes if 0 < each.share < RARE]
        return _finding(
            rare, f"class|classes in less than {RARE:.0%} of the pixels",
            "Accuracy says little here: look at each class's IoU, and try a Dice loss or class weights.",
        )  # fmt: skip
    if max(shares) / min(shares) < UNEVEN:
        return []
    names = [f"{each.name} ({each.samples})" for each in sorted(classes, key=lambda each: each.samples)]
    return [
        Finding(
            f"the largest class has {max(shares) / min(shares):.0f} times the samples of the smallest",
            "Look at balanced accuracy, and try class weights.",
            tuple(names),
        )
    ]


def _finding(names: Sequence[str], what: str, action: str, *, serious: bool = False) -> list[Finding]:
    """A finding, if there are names; `what` is "NOUN|NOUNS and the rest"."""
    if not names:
        return []
    one, _, more = what.partition("|")
    many, _, rest = more.partition(" ")
    noun = one if len(names) == 1 else many
    return [Finding(f"{len(names):,} {noun} {rest}", action, tuple(names), serious)]


def _named(seen: Seen, which: np.typing.NDArray[np.bool_]) -> list[str]:
    return [_name(seen, int(row)) for row in np.flatnonzero(which)]


def _joined(seen: Seen, rows: Sequence[int], between: str = " = ") -> str:
    return between.join(_name(seen, row) for row in rows)


def _name(seen: Seen, row: int) -> str:
    return f"{seen.names[row]} ({seen.splits[row]})" if seen.splits[row] else seen.names[row]


def _one_group(seen: Seen, rows: Sequence[int]) -> bool:
    return seen.groups is not None and len({seen.groups[row] for row in rows}) == 1
