"""Scalestudy: train one Keras or PyTorch model on many workers, and measure what each added worker gains.

`run`, `open` and `demo` are studies from Python, and `workers` is for scripts of your own.
"""

import importlib
from typing import TYPE_CHECKING, Any

from scalestudy.built_in import BUILT_IN
from scalestudy.util import registry

if TYPE_CHECKING:
    from scalestudy.features.scripts.script_workers import Workers as Workers
    from scalestudy.features.scripts.script_workers import workers as workers
    from scalestudy.notebook import demo as demo
    from scalestudy.notebook import open as open
    from scalestudy.notebook import run as run
    from scalestudy.util.errors import RunError as RunError
    from scalestudy.util.errors import UserError as UserError

registry.BUILT_IN |= BUILT_IN
_NAMES = {
    "features.scripts.script_workers": ("Workers", "workers"),
    "notebook": ("demo", "open", "run"),
    "util.errors": ("RunError", "UserError"),
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a name at its first use."""
    if name == "__version__":
        from scalestudy.util.modules import version

        return version()
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
