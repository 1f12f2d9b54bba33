"""All faults of a set in one refusal, so that a folder of thousands is not mended one file a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from scalestudy.data.files_in import several
from scalestudy.data.source import Item, Outcome, side_by_side
from scalestudy.errors import UserError
from scalestudy.files import write_atomically

SHOWN = 5
"""Faults that a message names where all have one reason."""
SHOWN_OF_EACH = 3
"""And of each where there are several."""


class Refused(UserError):
    """Several faults as one: `errors` are all of them."""

    def __init__(self, expected: str, received: str, action: str, errors: Sequence[UserError]) -> None:
        super().__init__(expected, received, action)
        self.errors = tuple(errors)


def each_or_refused(function: Callable[[Item], Outcome], items: Sequence[Item]) -> Iterator[Outcome]:
    """Yield `function(item)` in order; the items that it refuses are refused together at the end.

    Raises:
        UserError: After the last item: all that were refused.
    """
    refused: list[UserError] = []
    for outcome in side_by_side(lambda item: _outcome_of(function, item), items):
        if isinstance(outcome, UserError):
            refused.append(outcome)
        else:
            yield outcome
    if refused:
        raise together(refused)


def together(errors: Sequence[UserError]) -> Refused:
    """One refusal for all: how many there are of each reason, and the first of them by name."""
    first = errors[0]
    by_reason: dict[str, list[str]] = {}
    for error in errors:
        by_reason.setdefault(_reason(error), []).append(str(getattr(error, "path", error.received)))
    if len(by_reason) == 1:
        received = several([error.received for error in errors], SHOWN, between="; ")
    else:
        parts = [
            f"{len(named)} {reason} ({several(named, SHOWN_OF_EACH, between='; ')})"
            for reason, named in by_reason.items()
        ]
        received = f"{len(errors)} that are refused: {'; '.join(parts)}"
    return Refused(first.expected, received, first.action, errors)


@contextmanager
def listed(file: Path) -> Iterator[None]:
    """Within the block, write what is refused together to a file, and name it where the message is not all.

    A list of an earlier attempt goes.
    """
    with suppress(OSError):
        file.unlink(missing_ok=True)
    try:
        yield
    except Refused as refused:
        if len(refused.errors) <= SHOWN:
            raise
        lines = sorted(f"{_reason(error)}\t{error.received}\n" for error in refused.errors)
        with suppress(OSError):
            write_atomically(file, "".join(lines))
            raise Refused(
                refused.expected,
                f"{refused.received}; all {len(lines)} are listed in {file}",
                refused.action,
                refused.errors,
            ) from refused
        raise


def _reason(error: UserError) -> str:
    reason: str = getattr(error, "reason", f"against: {error.expected}")
    return reason


def _outcome_of(function: Callable[[Item], Outcome], item: Item) -> Outcome | UserError:
    try:
        return function(item)
    except UserError as error:
        return error
