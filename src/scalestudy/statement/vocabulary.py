"""The names that a panel file may use."""

from scalestudy.statement.columns import COLUMNS
from scalestudy.statement.facts import FACTS

FIGURES = (
    "speedup", "speedup-training", "efficiency", "quality", "phases", "loss-by-epoch", "loss-by-updates",
    "loss-by-samples", "loss-by-time",
)  # fmt: skip
"""Those of the report's figures that every study can have."""


def vocabulary() -> dict[str, tuple[str, ...]]:
    """Facts for sentences, columns for tables, and figures."""
    return {"facts": tuple(FACTS), "columns": tuple(COLUMNS), "figures": FIGURES}
