"""The strategies of all engines (`EngineTraits.strategies`), described without importing a framework.

A package adds a strategy to an engine by an entry point in the group "scalestudy.strategies".
"""

from collections.abc import Iterable

from scalestudy.plugins.engines import REGISTRY as ENGINES
from scalestudy.plugins.traits import Traits
from scalestudy.util.registry import Registry


def _of_engines() -> dict[str, Traits]:
    return {row.name: row for name in ENGINES.names() for row in ENGINES.get(name).strategies}


REGISTRY: Registry[Traits] = Registry("scalestudy.strategies", _of_engines)
DEFAULT = "native"


def traits(name: str) -> Traits:
    """Traits of a strategy; raises KeyError."""
    return REGISTRY.get(name)


def swept_names() -> list[str]:
    """Names that a study file may sweep, in the order in which they are shown."""
    return REGISTRY.names()


def accepted_names() -> list[str]:
    """All words for strategies in a study file: names, then common names that are not also names."""
    rows = REGISTRY.items()
    return list(filter(None, dict.fromkeys([row.name for row in rows] + [row.common_name for row in rows])))


def of_engine(engine: str) -> list[Traits]:
    """The strategies of an engine from any package, in the order in which they are shown."""
    return [row for row in REGISTRY.items() if row.engine == engine]


def named(word: str, engines: Iterable[str]) -> dict[str, str]:
    """The strategy that a word of a study file means, by engine, for each engine that knows the word."""
    found = {}
    for engine in engines:
        rows = of_engine(engine)
        names = {row.common_name: row.name for row in reversed(rows)} | {row.name: row.name for row in rows}
        if word in names:
            found[engine] = names[word]
    return found


def working_names() -> list[str]:
    """Names of the strategies that do the work themselves."""
    return [row.name for row in REGISTRY.items() if row.stands_for is None]


def references(engine: str | None) -> tuple[str, ...]:
    """Strategies of an engine whose one worker is plain training on one device, the common baseline.

    None, for numbers from other tools, stands for every engine.
    """
    return tuple(row.name for row in REGISTRY.items() if row.plain and engine in (None, row.engine))


def is_timed(name: str) -> bool:
    """Whether times of this strategy count for speed-up; True for a strategy that is not installed here."""
    return traits(name).timed if name in REGISTRY else True


def is_synchronous(name: str) -> bool:
    """Whether workers of this strategy take steps together; True for one that is not installed here."""
    return traits(name).synchronous if name in REGISTRY else True


def position(name: str) -> int:
    """Place of a strategy in tables and legends; unknown ones come last."""
    names = REGISTRY.names()
    return names.index(name) if name in names else len(names)
