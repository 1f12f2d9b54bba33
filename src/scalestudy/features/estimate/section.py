"""The report's section on foresight: what was expected of larger runs beside what was measured."""

from typing import TYPE_CHECKING

from scalestudy.features.estimate.against import Held, held_against, mean_factor
from scalestudy.report.document import Block, Drawing, Heading, Items, Paragraph, Section, Table
from scalestudy.features.estimate.figures import foreseen, foreseen_and_measured
from scalestudy.features.estimate.page import made
from scalestudy.report.format import decimals, number, time_unit
from scalestudy.features.estimate.records import EstimateRecord

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings


def estimate_section(findings: "Findings") -> Section | None:
    """None where nothing was foreseen."""
    estimate = findings.estimate
    if estimate is None:
        return None
    held = held_against(estimate, findings.rows)
    blocks = _compared(estimate, held) if held else _expected(estimate)
    return Section("Foreseen and measured" if held else "Foreseen", blocks, name="foreseen")


def _expected(estimate: EstimateRecord) -> tuple[Block, ...]:
    return (
        Paragraph(f"Estimated {made(estimate)}. No run whose times count has measured it yet."),
        Items(tuple(each.sentence for each in estimate.series)),
        Drawing(foreseen(estimate)),
    )


def _compared(estimate: EstimateRecord, held: list[Held]) -> tuple[Block, ...]:
    drawn = [Drawing(foreseen_and_measured(estimate, held))] if any(each.speedup for each in held) else []
    return (Paragraph(f"Estimated {made(estimate)}. {verdict(held)}"), *drawn, _table(held))


def verdict(held: list[Held]) -> str:
    """How far off an estimate was, in a sentence or two."""
    inside = sum(each.inside for each in held)
    worst = max(held, key=lambda each: abs(each.off))
    way = "longer" if worst.off > 0 else "shorter"
    text = f"Training times were off by a factor of {mean_factor(held):.2f} in the mean"
    if len(held) > 1:
        text += f", at most on {worst.key.label} ({100 * abs(worst.off):.0f} % {way} than foreseen)"
    else:
        text = f"Training on {worst.key.label} took {100 * abs(worst.off):.0f} % {way} than foreseen"
    rows = (
        f"{inside} of {len(held)} rows lie" if len(held) > 1 else f"it {'lies' if inside else 'does not lie'}"
    )
    return f"{text}; {rows} in the interval that was foreseen."


def _table(held: list[Held]) -> Table:
    unit, length = time_unit([each.seconds for each in held])
    digits = decimals([each.seconds / length for each in held])
    headings = (
        Heading("Strategy", brief="strategy", numeric=False), Heading("Workers", brief="n"),
        Heading("Foreseen time", unit, f"foreseen {unit}"), Heading("Interval", unit, unit),
        Heading("Measured time", unit, f"measured {unit}"), Heading("Off by", brief="off"),
        Heading("Foreseen speed-up", brief="S foreseen"), Heading("Measured speed-up", brief="S measured"),
    )  # fmt: skip
    rows = []
    for each in held:
        time, speed = each.foreseen.training_seconds, each.foreseen.speedup
        ends = f"{number(time.low / length, digits)}–{number(time.high / length, digits)}"
        name = f"{each.key.strategy} ({each.key.details})" if each.key.swept else each.key.strategy
        rows.append((
            name, str(each.key.workers), number(time.value / length, digits), ends,
            number(each.seconds / length, digits) + ("" if each.inside else " *"),
            f"{100 * each.off:+.0f} %".replace("-", "−"), number(speed.value, 2), number(each.speedup, 2),
        ))  # fmt: skip
    note = "An asterisk marks times outside of the interval that was foreseen."
    outside = () if all(each.inside for each in held) else (note,)
    caption = "Training times and speed-ups as they were foreseen from one worker, and as they were measured."
    return Table(headings, tuple(rows), caption=caption, footnotes=outside, name="foreseen-and-measured")
