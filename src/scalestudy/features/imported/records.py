"""What a user says of numbers that were measured elsewhere, and what was read of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from scalestudy.analysis.runs import Run
from scalestudy.features.imported.columns import NAMES
from scalestudy.study.metrics import Better
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class ImportOptions:
    """What the user says of the numbers.

    Attributes:
        columns: Column of a role, as {"workers": "NCORES"}; goes before what its name says.
        strategy: Of runs whose file does not state it.
        workers: Likewise.
        metric: Column (or TensorBoard tag) that is the quality, or the name of the metric in `quality`.
        better: Which way the quality is better, where it is not known by its name.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    strategy: str | None = None
    workers: int | None = None
    metric: str | None = None
    better: Better | None = None


def options_of(
    columns: Sequence[str] = (),
    strategy: str | None = None,
    workers: int | None = None,
    metric: str | None = None,
    better: str | None = None,
) -> ImportOptions:
    """ImportOptions as written on the command line, `columns` as ["workers=NCORES"].

    Raises:
        UserError: A column's role or a direction is unknown.
    """
    pairs = {}
    for text in columns:
        role, _, name = text.partition("=")
        if not name or role not in NAMES:
            raise UserError(
                f"--column ROLE=NAME, with a role out of {', '.join(NAMES)}", repr(text), "Correct --column."
            )
        pairs[role] = name
    if better not in (None, "higher", "lower"):
        raise UserError("higher or lower", repr(better), "Correct --better.")
    return ImportOptions(pairs, strategy, workers, metric, cast(Better | None, better))


@dataclass(frozen=True)
class Reading:
    """What was read of a file.

    Attributes:
        runs: One or more.
        remarks: How it was understood, in sentences without the file's name.
        skipped: Rows that could not be read: "line 7: …".
    """

    runs: tuple[Run, ...]
    remarks: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
