"""Scalestudy: train one Keras or PyTorch model on many workers, and know what each worker bought you."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scalestudy.features.scripts.workers import Workers as Workers
    from scalestudy.features.scripts.workers import workers as workers
    from scalestudy.notebook import demo as demo
    from scalestudy.notebook import open as open
    from scalestudy.notebook import run as run

UNKNOWN_VERSION = "0.0"
"""Version of a source tree without git history, as in pyproject.toml (fallback_version)."""


def __getattr__(name: str) -> Any:
    """Import the functions for notebooks and scripts, and `__version__`, at their first use."""
    if name in ("run", "open", "demo"):
        from scalestudy import notebook

        return getattr(notebook, name)
    if name in ("workers", "Workers"):
        from scalestudy.features.scripts import workers as script

        return script.workers if name == "workers" else script.Workers
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("scalestudy")
    except PackageNotFoundError:
        return UNKNOWN_VERSION
