"""The strategies of all engines (`EngineTraits.strategies`), described without importing a framework.

A package adds a strategy to an engine by an entry point in the group "scalestudy.strategies".
"""

import re

from scalestudy.plugins.engines import all_strategies
from scalestudy.plugins.traits import Traits
from scalestudy.util.registry import Registry

# A function, so that no engine is imported before a strategy is asked for.
REGISTRY: Registry[Traits] = Registry("scalestudy.strategies", all_strategies)
SCRIPT_STRATEGY = "ddp"
"""Strategy under which scripts run and are recorded; a script itself combines the gradients."""
DEFAULT = "native"


def traits(name: str) -> Traits:
    """Traits of a strategy; raises KeyError."""
    return REGISTRY.get(name)


def swept_names() -> list[str]:
    """Names that a study file may sweep, in the order in which they are shown."""
    return REGISTRY.names()


def of_engine(engine: str) -> list[Traits]:
    """The strategies of an engine from any package, in the order in which they are shown."""
    return [row for row in REGISTRY.items() if row.engine == engine]


def named(word: str) -> str | None:
    """The strategy that other tools call `word`, as `tf.distribute.MirroredStrategy`; None if there is none.

    The class of a strategy is its name in Keras, TensorFlow, Horovod and PyTorch.
    """
    # `tf.distribute.MirroredStrategy()` and `mirrored_strategy` become `mirrored`.
    last = word.rpartition(".")[2]
    name = last.partition("(")[0]
    letters = re.sub(r"[^a-z]", "", name.lower())
    letters = letters.removesuffix("strategy")
    for row in REGISTRY.items():
        own = row.name.replace("-", "")
        if letters == own or letters in row.aliases:
            return row.name
    return None


def working_names() -> list[str]:
    """Names of the strategies that do the work themselves."""
    return [row.name for row in REGISTRY.items() if row.stands_for is None]


def references(engine: str | None) -> tuple[str, ...]:
    """Strategies of an engine whose one worker is plain training on one device, the common baseline.

    None, for numbers from other tools, stands for every engine.
    """
    names = []
    for row in REGISTRY.items():
        is_of_engine = engine is None or engine == row.engine
        if row.plain and is_of_engine:
            names.append(row.name)
    return tuple(names)


def is_timed(name: str) -> bool:
    """Whether times of this strategy count for speed-up; True for a strategy that is not installed here."""
    # A record may come from an installation with other packages.
    if name not in REGISTRY:
        return True
    return traits(name).timed


def is_synchronous(name: str) -> bool:
    """Whether workers of this strategy take steps together; True for one that is not installed here."""
    if name not in REGISTRY:
        return True
    return traits(name).synchronous


def position(name: str) -> int:
    """Place of a strategy in tables and legends; unknown ones come last."""
    names = REGISTRY.names()
    # As of imported numbers, whose strategies may have any name.
    if name not in names:
        return len(names)
    return names.index(name)
