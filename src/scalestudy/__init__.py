"""Scalestudy: train one Keras model on many workers, and know what each worker bought you."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scalestudy.notebook import open as open
    from scalestudy.notebook import run as run

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`scalestudy.run` and `scalestudy.open`, loaded at their first use."""
    if name in ("run", "open"):
        from scalestudy import notebook

        return notebook.run if name == "run" else notebook.open
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
