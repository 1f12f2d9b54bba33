"""The names that a panel file may use."""

from scalestudy.report.figures import MAKERS
from scalestudy.statement.columns import COLUMNS
from scalestudy.statement.facts import FACTS


def vocabulary() -> dict[str, tuple[str, ...]]:
    """Facts for sentences, columns for tables, and figures."""
    return {"facts": tuple(FACTS), "columns": tuple(COLUMNS), "figures": tuple(MAKERS)}
