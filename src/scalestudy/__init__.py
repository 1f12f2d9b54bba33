"""Scalestudy: train one Keras or PyTorch model on many workers, and measure what each added worker gains.

`run`, `open` and `demo` are studies from Python, and `workers` is for scripts of your own. The rest is for
packages that bring a strategy, a source, a launcher or an engine.
"""

import importlib
from typing import TYPE_CHECKING, Any

from scalestudy.built_in import BUILT_IN
from scalestudy.util import registry

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement as Placement
    from scalestudy.config.settings import DataSettings as DataSettings
    from scalestudy.data.samples import Sample as Sample
    from scalestudy.data.sources.source import Contents as Contents
    from scalestudy.data.sources.source import Source as Source
    from scalestudy.data.sources.source import digest as digest
    from scalestudy.engines.group import Joined as Joined
    from scalestudy.engines.group import join as join
    from scalestudy.engines.interface import Engine as Engine
    from scalestudy.features.launch.script_workers import Workers as Workers
    from scalestudy.features.launch.script_workers import workers as workers
    from scalestudy.launch.launcher import Launcher as Launcher
    from scalestudy.notebook import demo as demo
    from scalestudy.notebook import open as open
    from scalestudy.notebook import run as run
    from scalestudy.plugins.engines import EngineTraits as EngineTraits
    from scalestudy.plugins.traits import Rendezvous as Rendezvous
    from scalestudy.plugins.traits import Traits as Traits
    from scalestudy.util.errors import RunError as RunError
    from scalestudy.util.errors import UserError as UserError

registry.BUILT_IN |= BUILT_IN
_NAMES = {
    "cluster.placement": ("Placement",),
    "config.settings": ("DataSettings",),
    "data.sources.source": ("Contents", "Source", "digest"),
    "data.samples": ("Sample",),
    "engines.interface": ("Engine",),
    "engines.group": ("Joined", "join"),
    "features.launch.script_workers": ("Workers", "workers"),
    "launch.launcher": ("Launcher",),
    "notebook": ("demo", "open", "run"),
    "plugins.engines": ("EngineTraits",),
    "plugins.traits": ("Rendezvous", "Traits"),
    "util.errors": ("RunError", "UserError"),
}
_MODULES = {
    name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a name at its first use."""
    if name == "__version__":
        from scalestudy.util.own_package import version

        return version()
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
