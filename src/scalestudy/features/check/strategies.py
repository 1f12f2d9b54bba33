"""All strategies of all engines: what each is, and whether it can be used on this machine."""

from scalestudy.study.engines import engine_traits
from scalestudy.study.records import Record
from scalestudy.study.strategies import REGISTRY, Traits, traits


class StrategyLine(Record):
    """One strategy."""

    strategy: str
    engine: str
    summary: str
    synchronous: bool
    """Whether all workers take a step together."""
    nodes: bool
    """Whether its workers may be on several nodes."""
    timed: bool
    """Whether its times say something about speed-up."""
    summed_by: str
    """What moves gradients between workers; "" where nothing does."""
    missing: str = ""
    """Why it cannot be used here; "" if it can."""
    action: str = ""


def strategy_lines() -> list[StrategyLine]:
    """All strategies, in the order in which they are shown."""
    return [_line(traits(name)) for name in REGISTRY.names()]


def _line(row: Traits) -> StrategyLine:
    missing = engine_traits(row.engine).missing_software([row.library] if row.library else [])
    return StrategyLine(
        strategy=row.name, engine=row.engine, summary=row.summary, synchronous=row.synchronous,
        nodes=row.spans_nodes, timed=row.timed, summed_by=row.summed_by,
        missing=missing.received if missing else "", action=missing.action if missing else "",
    )  # fmt: skip
