"""What `scalestudy recommend` says, as a document and as JSON."""

import json
from typing import Any

from scalestudy import units
from scalestudy.analysis.scaling.recommend import Advisable, Advised, Goal
from scalestudy.analysis.statistics import Estimate
from scalestudy.report.document import Block, Document, Heading, Items, Paragraph, Table
from scalestudy.report.format import decimals, time_unit, with_interval

ASSUMED = (
    "Times of counts that were not measured are by the scaling model of each strategy (`docs/models.md`)."
    " A job also takes the time beside training, as"
    " measured at the counts next to it: start-up, compilation, evaluation and saving. Intervals are 95 %"
    " prediction intervals of one run, and hold if times go on as they were measured."
)


def recommended_document(name: str, found: Advisable) -> Document:
    """The counts, the best first, and what they rest on."""
    blocks: list[Block] = [Paragraph(headline(found))]
    if found.found:
        blocks += [_table(found), Paragraph(ASSUMED)]
    if found.reasons:
        blocks.append(Items(tuple(f"No count of {reason}." for reason in found.reasons)))
    return Document(f"{name}: how many workers to ask for", tuple(blocks))


def recommended_json(name: str, found: Advisable) -> str:
    """The same for programs: seconds, worker-hours times the charge, joules."""
    goal = found.goal
    record: dict[str, Any] = {
        "schema_version": 1,
        "study": name,
        "goal": {"aim": goal.aim, "value": goal.value, "charge": goal.charge},
        "recommended": [_record(each) for each in found.found],
        "without": list(found.reasons),
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def headline(found: Advisable) -> str:
    """What to ask for, in a sentence or two."""
    if not found.found:
        return f"No strategy has a count that {_aim(found.goal)}."
    best = found.found[0]
    text = f"Ask for {best.key.label}: {_words(best, found.goal)}."
    if not best.seen:
        beyond = "lies beyond" if best.prediction.kind == "extrapolated" else "lies between"
        text += f" That count {beyond} those measured: it is predicted, its quality is not known."
    if found.goal.aim == "energy" or best.sure == best.key.workers:
        return text
    if best.prediction.seconds.low is None:
        return f"{text} Too few runs were made to say how sure that is."
    return text + (
        f" With 97.5 % certainty {best.sure} workers do."
        if best.sure
        else " No count does so with 97.5 % certainty."
    )


def _aim(goal: Goal) -> str:
    return {
        "efficiency": f"keeps an efficiency of {goal.value:g}",
        "deadline": f"is done in {units.duration(goal.value)}",
        "energy": "is known to need the least energy",
    }[goal.aim]


def _words(best: Advised, goal: Goal) -> str:
    if goal.aim == "efficiency":
        return f"the most workers that keep an efficiency of {goal.value:g}"
    if goal.aim == "deadline":
        return f"the least cost of a job that is done in {units.duration(goal.value)}"
    return f"the least energy of a training, {(best.joules or 0) / 3600:.3g} Wh"


def _table(found: Advisable) -> Table:
    unit, length = time_unit([each.prediction.seconds.value or 0.0 for each in found.found])
    times = [_job(each).scaled(1 / length) for each in found.found]
    digits = decimals([time.value or 0.0 for time in times])
    costs = decimals([each.cost.value or 0.0 for each in found.found])
    energy = any(each.joules is not None for each in found.found)
    rows = tuple(
        (
            each.key.strategy + (f" ({each.key.details})" if each.key.swept else ""),
            str(each.key.workers),
            with_interval(time, digits) if each.cost.value is not None else "",
            with_interval(each.prediction.efficiency, 2),
            with_interval(each.cost, costs) if each.cost.value is not None else "",
            *([f"{each.joules / 3600:.3g}" if each.joules else ""] if energy else []),
            "measured" if each.seen else "predicted",
        )
        for each, time in zip(found.found, times, strict=True)
    )
    charged = "worker-hours" if found.goal.charge == 1 else f"worker-hours × {found.goal.charge:g}"
    headings = (
        Heading("Strategy", numeric=False),
        Heading("Workers", brief="n"),
        Heading("Time of a job", unit, f"job {unit}"),
        Heading("Efficiency", "training time", "E"),
        Heading("Cost", charged, "cost"),
        *([Heading("Energy", "Wh", "Wh")] if energy else []),
        Heading("Count", numeric=False),
    )
    return Table(headings, rows, name="recommended")


def _job(each: Advised) -> Estimate:
    seconds = each.prediction.seconds
    ends = (seconds.value, seconds.low, seconds.high)
    return Estimate(*(None if end is None else end + each.overhead for end in ends))


def _record(each: Advised) -> dict[str, Any]:
    job = _job(each)
    return {
        "strategy": each.key.strategy,
        "swept": each.key.swept,
        "workers": each.key.workers,
        "job_seconds": job.value,
        "job_seconds_low": job.low,
        "job_seconds_high": job.high,
        "efficiency": each.prediction.efficiency.value,
        "efficiency_low": each.prediction.efficiency.low,
        "efficiency_high": each.prediction.efficiency.high,
        "cost": each.cost.value,
        "joules": each.joules,
        "sure_workers": each.sure,
        "measured": each.seen,
    }
