"""What a reader can leave out of the results table by its values: strategies and swept values."""

from dataclasses import dataclass

from scalestudy.analysis.findings import Findings

MOST_VALUES = 12
"""Values of a column that have a button each; of more, typing finds them sooner."""


@dataclass(frozen=True)
class Chips:
    """The values of one column.

    Attributes:
        name: Of the column.
        column: Its place in the table, from 0.
        values: In the order of the rows.
    """

    name: str
    column: int
    values: tuple[str, ...]


def chips(findings: Findings) -> list[Chips]:
    """Columns that say what was swept, with their values, where there are several."""
    names = sorted({name for row in findings.rows for name in row.key.swept})
    found = [Chips("Strategy", 0, tuple(dict.fromkeys(row.strategy for row in findings.rows)))]
    found += [
        Chips(
            name, 2 + place, tuple(dict.fromkeys(str(row.key.swept.get(name, "")) for row in findings.rows))
        )
        for place, name in enumerate(names)
    ]
    return [each for each in found if 1 < len(each.values) <= MOST_VALUES]
