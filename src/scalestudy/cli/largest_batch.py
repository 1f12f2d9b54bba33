"""What `scalestudy check STUDY --largest-batch` prints."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from scalestudy.util import units

if TYPE_CHECKING:
    from scalestudy.features.check.batch_search import Trial


def print_largest_batch(study: str, form: Literal["table", "json"]) -> bool:
    """Search, and print each trial and what came of them; returns whether any batch fits."""
    from scalestudy.cli.console import out
    from scalestudy.features.check.largest_batch import largest_batch

    console = out()

    def tell(trial: "Trial") -> None:
        if form == "table":
            console.print(_line(trial), markup=False)

    found = largest_batch(study, tell=tell)
    largest = found.search.largest
    if form == "json":
        print(json.dumps({"largest_batch": largest, **asdict(found)}, indent=2))
        return largest > 0
    whole = " (the whole training set)" if largest == found.samples else ""
    console.print(
        f"Largest per-worker batch that fits: {largest:,}{whole}, tried with {found.point} on one worker "
        f"of this machine ({found.device}). Strategies that exchange gradients keep buffers beside it.",
        markup=False,
    )
    return largest > 0


def _line(trial: "Trial") -> str:
    took = "" if trial.peak is None else f", {units.size(trial.peak)}"
    if trial.fits:
        return f"{trial.batch:>9,}  fits{took}"
    how = "does not fit" if trial.tried else "is not tried"
    return f"{trial.batch:>9,}  {how}{took}: {trial.why}"
