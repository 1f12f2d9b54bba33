"""Where the time of a run goes."""

from collections.abc import Sequence

from scalestudy.analysis.runs import Run


def phase_seconds(runs: Sequence[Run]) -> dict[str, float]:
    """Mean seconds by phase over runs, in the order in which the phases were first recorded.

    What the phases leave of the wall time is called "other", so that the sum is the wall time.
    """
    if not runs:
        return {}
    names = dict.fromkeys(name for run in runs for name in run.result.phases)
    means = {name: sum(run.result.phases.get(name, 0.0) for run in runs) / len(runs) for name in names}
    walls = [run.result.wall_seconds for run in runs if run.result.wall_seconds is not None]
    wall = sum(walls) / len(runs) if len(walls) == len(runs) else 0.0
    rest = wall - sum(means.values())
    if rest > 0.005 * wall:
        means["other"] = means.get("other", 0.0) + rest
    return means
