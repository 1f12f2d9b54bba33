"""All faults of a set in one refusal, so that a folder of thousands is not mended one file a time."""

from collections.abc import Callable, Iterator, Sequence

from scalestudy.data.files_in import several
from scalestudy.data.source import Item, Outcome, side_by_side
from scalestudy.errors import UserError


def each_or_refused(function: Callable[[Item], Outcome], items: Sequence[Item]) -> Iterator[Outcome]:
    """Yield `function(item)` in order; the items that it refuses are refused together at the end.

    Raises:
        UserError: After the last item: what was refused of one kind, by name, and how many of another.
    """
    refused: list[UserError] = []
    for outcome in side_by_side(lambda item: _outcome_of(function, item), items):
        if isinstance(outcome, UserError):
            refused.append(outcome)
        else:
            yield outcome
    if refused:
        raise together(refused)


def together(errors: Sequence[UserError]) -> UserError:
    """One refusal for all: it names those of the first one's kind, and counts the others."""
    first = errors[0]
    alike = [error.received for error in errors if error.expected == first.expected]
    others = len(errors) - len(alike)
    received = several(alike, between="; ") + (
        f" ({others} more are refused for other reasons)" if others else ""
    )
    return UserError(first.expected, received, first.action)


def _outcome_of(function: Callable[[Item], Outcome], item: Item) -> Outcome | UserError:
    try:
        return function(item)
    except UserError as error:
        return error
