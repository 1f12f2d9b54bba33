"""Files that are no image, or not a whole one: found before anything is written, or gone on without.

Only reading a file to its end tells, so it is done once more where a header fails or `skip_bad` asks for it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalestudy.data import suffixes
from scalestudy.data.faults import Refused, each_or_refused, together
from scalestudy.data.files_in import several
from scalestudy.data.left_out import DAMAGED, LeftOut, Leftovers
from scalestudy.data.open_image import DamagedFile
from scalestudy.data.source import Outcome, Ranges, side_by_side
from scalestudy.errors import UserError


def headers_or_all_faults(
    header: Callable[[Path], Outcome],
    images: Sequence[Path],
    read: Callable[[Path], Any],
    files: Iterable[Path],
) -> list[Outcome]:
    """The images' headers; where one is refused, `files` are read as well, so that all faults are one list.

    Raises:
        UserError: what is refused, of headers and of files.
    """
    try:
        return list(each_or_refused(header, images))
    except Refused as refused:
        known = {error.path for error in refused.errors if isinstance(error, DamagedFile)}
        more = damage(read, [file for file in files if file not in known])
        raise together([*refused.errors, *more]) from refused


def damage(read: Callable[[Path], Any], files: Iterable[Path]) -> list[DamagedFile]:
    """What is damaged of these files; images are read to their end, each once, and no tables or texts."""

    def fault(file: Path) -> DamagedFile | None:
        try:
            read(file)
        except DamagedFile as error:
            return error
        except UserError:
            pass  # It can be read; what else is wrong with it is told by who needs it.
        return None

    images = [file for file in dict.fromkeys(files) if file.suffix.lower() in suffixes.READ]
    return [each for each in side_by_side(fault, images) if each is not None]


@dataclass(frozen=True)
class Sifted:
    """Samples without those of which a file is damaged.

    Attributes:
        rows: Numbers of those that stay, in their order.
        given: Where they stand by split.
        damaged: The files that are damaged.
    """

    rows: list[int]
    given: Ranges
    damaged: list[DamagedFile]

    def left_out(self, root: Path) -> tuple[LeftOut, ...]:
        """The files by the kind of damage, as seen from the source's folder."""
        left = Leftovers(root)
        for each in self.damaged:
            left.add(f"{DAMAGED}: {each.reason}", each.path)
        return left.found()


def sift(
    files: Sequence[Sequence[Path]],
    given: Ranges,
    read: Callable[[Path], Any],
    classes: Sequence[str] | None = None,
) -> Sifted:
    """Go on without samples of which a file is damaged.

    Args:
        files: Those of each sample.
        given: Rows by split.
        read: Reads a file to its end.
        classes: The class of each sample, where they have one.

    Raises:
        UserError: a class or a split has no sample left.
    """
    damaged = damage(read, (file for each in files for file in each))
    bad = {each.path for each in damaged}
    stay = [bad.isdisjoint(each) for each in files]
    ranges = {split: (sum(stay[:start]), sum(stay[:stop])) for split, (start, stop) in given.items()}
    emptied = [f"split {split}" for split, (start, stop) in ranges.items() if start == stop]
    if classes is not None:
        left = {name for name, good in zip(classes, stay, strict=True) if good}
        emptied += [f"class {name}" for name in dict.fromkeys(classes) if name not in left]
    if emptied or not any(stay):
        raise UserError(
            "a whole file at least in every class and split, to go on without damaged ones",
            f"{stay.count(False)} of {len(files)} samples damaged, among them all"
            + (f" of {several(emptied)}" if emptied else ""),
            "Replace damaged files by intact copies; without skip_bad they are listed.",
        )
    return Sifted([row for row, good in enumerate(stay) if good], ranges, damaged)
