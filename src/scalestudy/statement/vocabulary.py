"""The names that a panel file may use."""

from scalestudy.statement.columns import COLUMNS
from scalestudy.statement.facts import FACTS
from scalestudy.statement.figures import MAKERS


def vocabulary() -> dict[str, tuple[str, ...]]:
    """Facts for sentences, columns for tables, and figures."""
    return {"facts": tuple(FACTS), "columns": tuple(COLUMNS), "figures": tuple(MAKERS)}
