"""The runs as text input for Extra-P, which models how times grow.

The form is that of Extra-P's `docs/file-formats.md`, "Text file format": parameters, points, and for each
metric and region one DATA line a point, which holds all repetitions. A reader of this form takes four
parameters at most, and models take five values of a parameter at least (Calotoiu et al., "Using automated
performance modeling to find scalability bugs in complex codes", SC13).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run, describe
from scalestudy.errors import UserError
from scalestudy.report.formats import Format, Medium

LEAST_POINTS = 5
MOST_PARAMETERS = 4
Point = tuple[float, ...]
Series = dict[Point, list[Run]]


def to_extrap(findings: Findings) -> str:
    """Seconds by phase and throughput of every repetition; a region a strategy, with its phases below.

    Numbers that were swept are parameters beside `workers`, three at most; other swept values are in the
    region's name. All regions have the same points, as the form asks: those which their strategies share.

    Raises:
        UserError: No strategy has five worker counts.
    """
    names = _parameters(findings)
    found = _series(findings, names)
    kept, left_out = _sharing(found)
    if not kept:
        most = max((len({point[0] for point in series}) for series in found.values()), default=0)
        raise UserError(
            f"{LEAST_POINTS} worker counts of a strategy at least, as Extra-P's models need",
            f"{most} at most",
            "Sweep more, or use --format csv.",
        )
    points = sorted(next(iter(kept.values())))
    lines = [f"# {findings.name}: {', '.join(kept)}".replace("\n", " ")]
    lines += [f"# {name} is left out: it shares fewer than {LEAST_POINTS} worker counts" for name in left_out]
    lines.append(f"PARAMETER {' '.join(_word(name) for name in ('workers', *names))}")
    lines.append(f"POINTS {' '.join(_point(point) for point in points)}")
    regions = {name: [series[point] for point in points] for name, series in kept.items()}
    for metric, data in (("seconds", _seconds(regions)), ("throughput", _throughputs(regions))):
        for number, (region, values) in enumerate(data.items()):
            lines += [f"METRIC {metric}"] * (number == 0) + [f"REGION {region}"]
            lines += [f"DATA {' '.join(f'{value:.9g}' for value in each)}" for each in values]
    return "\n".join(lines) + "\n"


def _parameters(findings: Findings) -> list[str]:
    """Swept names whose values are numbers, without those beyond what the form takes."""
    values: dict[str, list[object]] = {}
    for run in findings.runs:
        for name, value in run.result.swept.items():
            values.setdefault(name, []).append(value)
    numbers = [name for name, found in values.items() if len(set(map(str, found))) > 1 and _numeric(found)]
    return sorted(numbers)[: MOST_PARAMETERS - 1]


def _numeric(values: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _series(findings: Findings, names: Sequence[str]) -> dict[str, Series]:
    """Runs by region and point; oversubscribed ones say nothing about time."""
    found: dict[str, Series] = {}
    for run in findings.runs:
        result, swept = run.result, run.result.swept
        if result.oversubscribed or any(name not in swept for name in names):
            continue
        words = describe({name: value for name, value in swept.items() if name not in names})
        region = _line(f"{result.strategy} ({words})" if words else result.strategy)
        point = (float(result.workers), *(float(swept[name]) for name in names))
        found.setdefault(region, {}).setdefault(point, []).append(run)
    return found


def _sharing(series: Mapping[str, Series]) -> tuple[dict[str, Series], list[str]]:
    """Series that share points of five worker counts, those with the most points first; and the others."""
    shared: set[Point] = set()
    kept: list[str] = []
    for name in sorted(series, key=lambda name: -len(series[name])):
        both = shared & series[name].keys() if kept else set(series[name])
        if len({point[0] for point in both}) >= LEAST_POINTS:
            shared, kept = both, [*kept, name]
    chosen = {name: {point: series[name][point] for point in shared} for name in series if name in kept}
    return chosen, [name for name in series if name not in kept]


def _seconds(regions: Mapping[str, Sequence[Sequence[Run]]]) -> dict[str, list[list[float]]]:
    """Wall time, training time and phases; what a point lacks is no region."""
    found: dict[str, list[list[float]]] = {}
    for name, points in regions.items():
        phases = dict.fromkeys(phase for runs in points for run in runs for phase in run.result.phases)
        wanted: dict[str, Callable[[Run], float | None]] = {name: lambda run: run.result.wall_seconds}
        wanted |= {f"{name}->{_line(phase)}": _phase(phase) for phase in phases}
        for region, of in wanted.items():
            values = _values(points, of)
            if values is not None:
                found[region] = values
    return found


def _phase(name: str) -> Callable[[Run], float | None]:
    return lambda run: run.result.phases.get(name)


def _throughputs(regions: Mapping[str, Sequence[Sequence[Run]]]) -> dict[str, list[list[float]]]:
    found = {name: _values(points, lambda run: run.result.throughput) for name, points in regions.items()}
    return {name: values for name, values in found.items() if values is not None}


def _values(points: Sequence[Sequence[Run]], of: Callable[[Run], float | None]) -> list[list[float]] | None:
    """Values of all repetitions by point; None where a point has none."""
    found = [
        [value for run in runs if (value := of(run)) is not None and math.isfinite(value)] for runs in points
    ]
    return found if all(found) else None


def _point(point: Point) -> str:
    return f"({' '.join(f'{value:.9g}' for value in point)})"


def _word(name: str) -> str:
    return "_".join(name.split())


def _line(text: str) -> str:
    """The text on one line, without what separates the parts of a region."""
    return " ".join(text.replace("->", "→").split())


def _render(findings: Findings, _: Medium) -> str:
    return to_extrap(findings)


FORMAT = Format(_render)
