"""The engines, by their names."""

from scalestudy.engines.base import Engine
from scalestudy.registry import Registry
from scalestudy.study.strategies import Traits

REGISTRY: Registry[Engine] = Registry(
    "scalestudy.engines", {"tensorflow": "scalestudy.engines.tensorflow.engine:ENGINE"}
)


def engine_of(strategy: Traits) -> Engine:
    """The engine that a strategy works with, imported at its first use."""
    return REGISTRY.get(strategy.engines[0])
