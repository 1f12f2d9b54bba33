"""Key numbers of the advised point, as a page shows them."""

from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.statistics import Estimate
from scalestudy.report.format import number
from scalestudy.util import units


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
    price, change, quality = advice.price, advice.verdict, choice.quality
    assert price is not None
    reference = advice.decision.reference
    against = f"against {reference.label}" if reference and reference != choice.key else ""
    spread = _span(price.speedup)
    found = [
        Card("Advised workers", str(choice.workers), f"with {choice.strategy}"),
        Card(
            "Times as fast",
            number(price.speedup.value, 2),
            ", ".join(filter(None, (spread, against))),
        ),
        Card("Cost efficiency", number(price.efficiency.value, 2), f"at least {findings.target:g} asked for"),
        Card(
            metric_label(choice.metric),
            number(quality.value, choice.digits),
            change.sentence if change else "",
        ),
    ]
    if price.cost.value is not None:
        first = (advice.decision.prices or {}).get(reference) if reference else None
        remark = (
            f"{units.cost(first.cost.value)} with {first.key.label}" if first and first.cost.value else ""
        )
        found.append(Card(f"{price.bill.capitalize()} time a training", units.cost(price.cost.value), remark))
    return [*found, progress]


def _span(speed: Estimate) -> str:
    if speed.low is None or speed.high is None:
        return "one run: no interval"
    return f"{number(speed.low, 2)} to {number(speed.high, 2)}" if speed.low != speed.high else ""
