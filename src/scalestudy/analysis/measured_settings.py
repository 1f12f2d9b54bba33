"""What a study has measured beside a point that was diagnosed: the same, but for one key."""

from scalestudy.analysis.measures import Measures, oversubscription
from scalestudy.analysis.runs import Key, key_of
from scalestudy.analysis.statistics import Estimate
from scalestudy.study.diagnosis import Diagnosis


def alternatives(diagnosis: Diagnosis, measures: Measures) -> dict[str, tuple[str, Estimate]]:
    """By setting: the key, and the throughput that the study has measured with it over the point's own."""
    base = key_of(diagnosis.strategy, diagnosis.workers, dict(diagnosis.swept))
    if base not in measures.groups or not measures.throughput.values[base]:
        return {}
    found = {}
    for key, runs in measures.groups.items():
        changed = _change(base, key)
        if changed is None or oversubscription(runs) or not measures.throughput.values[key]:
            continue
        ratio = measures.throughput.ratio(key, base)
        if ratio.value is not None:
            found[_setting(*changed)] = changed[0], ratio
    return found


def _change(base: Key, other: Key) -> tuple[str, object] | None:
    """The one key in which a row differs from the diagnosed one, and its value there."""
    if other.workers != base.workers:
        return None
    changes: list[tuple[str, object]] = []
    if other.strategy != base.strategy:
        changes.append(("strategy", other.strategy))
    changes += [(name, value) for name, value in other.swept.items() if base.swept.get(name) != value]
    return changes[0] if len(changes) == 1 else None


def _setting(key: str, value: object) -> str:
    if isinstance(value, bool):
        return f"{key} = {str(value).lower()}"
    return f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
