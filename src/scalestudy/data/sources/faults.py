"""Collect all faults of a set in one error, so that users can repair a folder in one pass.

Damage is found only by reading whole files, so all files are read if a header fails or `skip_bad` is set.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from scalestudy.data.images import suffixes
from scalestudy.data.images.open import DamagedFile
from scalestudy.data.sources.base import Item, Outcome, side_by_side
from scalestudy.data.sources.files import several
from scalestudy.data.sources.layouts.base import Listing
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

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
            by_reason.setdefault(_reason(error), []).append(str(getattr(error, "path", error.received)))
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


@contextmanager
def listed(file: Path) -> Iterator[None]:
    """If the block raises `Refused` with more faults than its message shows, list them in `file`.

    The message then names the file. A list of an earlier attempt is deleted.
    """
    with suppress(OSError):
        file.unlink(missing_ok=True)
    try:
        yield
    except Refused as refused:
        if len(refused.errors) > SHOWN:
            lines = sorted(f"{_reason(error)}\t{error.received}\n" for error in refused.errors)
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(file, "".join(lines))
                received = f"{refused.received}; all {len(lines)} are listed in {file}"
                raise UserError(refused.expected, received, refused.action) from refused
        raise


def _reason(error: UserError) -> str:
    return str(getattr(error, "reason", f"against: {error.expected}"))


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

    images = [file for file in dict.fromkeys(files) if file.suffix.lower() in suffixes.READ]
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
