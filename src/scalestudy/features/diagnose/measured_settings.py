"""What a study has measured beside a point that was diagnosed: the same, but for one key."""

from scalestudy.analysis.measures import Measures, is_virtual, oversubscription
from scalestudy.analysis.runs import Key, key_of
from scalestudy.analysis.statistics import Estimate
from scalestudy.features.diagnose.records import Diagnosis


def alternatives(diagnosis: Diagnosis, measures: Measures) -> dict[str, tuple[str, Estimate]]:
    """By setting: the key, and the throughput that the study has measured with it over the point's own."""
    base = key_of(diagnosis.strategy, diagnosis.workers, dict(diagnosis.swept))
    if base not in measures.groups or not _tells(base, measures):
        return {}
    found = {}
    for key in measures.groups:
        changed = _change(base, key)
        if changed is None or not _tells(key, measures):
            continue
        ratio = measures.throughput.ratio(key, base)
        if ratio.value is not None:
            found[_setting(*changed)] = changed[0], ratio
    return found


def _tells(key: Key, measures: Measures) -> bool:
    """Whether a row's throughput is known and says something."""
    runs = measures.groups[key]
    return bool(measures.throughput.values[key]) and not oversubscription(runs) and not is_virtual(runs)


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
