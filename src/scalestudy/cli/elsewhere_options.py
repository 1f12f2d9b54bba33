"""The options of `scalestudy report` on numbers that were measured elsewhere."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from scalestudy.errors import UserError

if TYPE_CHECKING:
    from scalestudy.features.imported.base import Wanted

From = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        help="Numbers that were measured elsewhere: a table, a log, event files, a folder or a quoted pattern"
        " of them; may be given several times. docs/imported.md says what is read.",
        metavar="FILE",
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="With --from: which column says what, as workers=NGPUS; may be given several times.",
        metavar="WHAT=NAME",
    ),
]
Unit = Annotated[
    list[str] | None,
    typer.Option("--unit", help="With --from: unit of a column, as seconds=min.", metavar="WHAT=UNIT"),
]
Strategy = Annotated[
    str | None, typer.Option(help="With --from: strategy of runs that say none.", metavar="NAME")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="With --from: workers of runs that say none.", metavar="N")
]
Metric = Annotated[
    str | None, typer.Option(help="With --from: column or tag that is the quality.", metavar="NAME")
]
Better = Annotated[
    str | None, typer.Option(help="With --from: which way the quality is better.", metavar="higher|lower")
]
Epochs = Annotated[
    int | None, typer.Option(min=1, help="With --from: epochs of runs that say none.", metavar="N")
]
Samples = Annotated[
    int | None, typer.Option(min=1, help="With --from: size of the training set.", metavar="N")
]


class Said(NamedTuple):
    """What the options say; nothing where none is given."""

    columns: Sequence[str] | None = None
    units: Sequence[str] | None = None
    better: str | None = None
    strategy: str | None = None
    workers: int | None = None
    metric: str | None = None
    epochs: int | None = None
    samples: int | None = None


def wanted(said: Said) -> "Wanted":
    """The same, checked.

    Raises:
        UserError: An option says something else than it may.
    """
    from scalestudy.features.imported.base import Wanted
    from scalestudy.features.imported.columns import ROLES, TIMED

    if said.better not in (None, "higher", "lower"):
        raise UserError("higher or lower", repr(said.better), "Correct --better.")
    return Wanted(
        _pairs("column", said.columns, ROLES),
        _pairs("unit", said.units, TIMED),
        said.strategy,
        said.workers,
        said.metric,
        "higher" if said.better == "higher" else "lower" if said.better == "lower" else None,
        said.epochs,
        said.samples,
    )


def _pairs(option: str, given: Sequence[str] | None, known: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in given or ():
        name, mark, value = text.partition("=")
        if not mark or not value or name not in known:
            raise UserError(
                f"--{option} WHAT={option.upper()}, with WHAT one of {', '.join(known)}",
                repr(text),
                "Correct it.",
            )
        pairs[name] = value
    return pairs
