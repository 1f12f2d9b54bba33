"""The names that a panel file may use."""

from scalestudy.features.proposal.columns import COLUMNS
from scalestudy.features.proposal.facts import FACTS
from scalestudy.features.proposal.figures import MAKERS


def vocabulary() -> dict[str, tuple[str, ...]]:
    """Facts for sentences, columns for tables, and figures."""
    return {"facts": tuple(FACTS), "columns": tuple(COLUMNS), "figures": tuple(MAKERS)}
