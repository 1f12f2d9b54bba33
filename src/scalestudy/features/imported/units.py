"""Units of columns: as their names say, as the user says, or taken for seconds and said back."""

from scalestudy.errors import UserError
from scalestudy.features.imported.base import Wanted
from scalestudy.features.imported.columns import TIMED, Column
from scalestudy.features.imported.text import shown
from scalestudy.features.imported.values import TIMES


def factor(role: str, column: Column, wanted: Wanted) -> float:
    """What multiplies a column's numbers to be seconds, or samples per second.

    Raises:
        UserError: The unit is none that is known.
    """
    if role not in TIMED:
        return 1000.0 if column.unit.startswith("k") and not column.unit.startswith("kb") else 1.0
    unit = _unit(role, column, wanted)
    if unit and unit not in TIMES:
        raise UserError(
            f"a unit of time for {role}, as s, min or h", repr(shown(unit)), f"Say it: --unit {role}=min"
        )
    return TIMES[unit] if unit else 1.0


def said(role: str, column: Column, wanted: Wanted) -> str:
    """How the unit was understood, in brackets."""
    if role not in TIMED:
        return " (of each worker)" if column.per_device else ""
    unit = _unit(role, column, wanted)
    return f" (in {unit})" if unit else f" (taken for seconds; --unit {role}=min says otherwise)"


def _unit(role: str, column: Column, wanted: Wanted) -> str:
    return wanted.units.get(role, column.unit).lower()
