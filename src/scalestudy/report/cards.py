"""Key numbers of the advised point, as a page shows them."""

from dataclasses import dataclass

from scalestudy import units
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.statistics import Estimate
from scalestudy.report.format import number


@dataclass(frozen=True)
class Card:
    """A key number."""

    name: str
    value: str
    remark: str = ""


def cards(findings: Findings) -> list[Card]:
    """Key numbers of the advised point."""
    choice, advice = findings.advice.choice, findings.advice
    done = sum(point.state == "done" for point in findings.planned)
    progress = Card(
        "Runs", str(len(findings.runs)), f"{done} of {len(findings.planned)} done" if findings.planned else ""
    )
    if choice is None:
        return [progress]
    against = choice.speed.against
    relative = f"relative to {against} workers" if against > 1 else ""
    speed, quality, change = choice.speed.steady, choice.quality, findings.advice.verdict
    found = [
        Card("Advised workers", str(choice.workers), f"with {choice.strategy}"),
        Card("Speed-up", number(speed.value, 2), ", ".join(filter(None, (_span(speed), relative)))),
        Card("Efficiency", number(choice.efficiency.value, 2), f"at least {findings.target:g} asked for"),
        Card(
            metric_label(choice.metric),
            number(quality.value, choice.digits),
            change.sentence if change else "",
        ),
    ]
    if advice.worker_hours is not None:
        before = advice.baseline_worker_hours
        noun = "worker" if against == 1 else "workers"
        remark = f"{units.cost(before)} with {against} {noun}" if before is not None else ""
        found.append(Card("Worker time a training", units.cost(advice.worker_hours), remark))
    return [*found, progress]


def _span(speed: Estimate) -> str:
    if speed.low is None or speed.high is None:
        return "one run: no interval"
    return f"{number(speed.low, 2)} to {number(speed.high, 2)}" if speed.low != speed.high else ""
