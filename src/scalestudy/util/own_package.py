"""Scalestudy itself, as it is installed: its version, and the folder of its source."""

from importlib import metadata
from pathlib import Path

UNKNOWN_VERSION = "0.1.1.dev0"
"""Version of a source tree without git history, as in pyproject.toml (fallback_version)."""


def version() -> str:
    """Return the installed version; `UNKNOWN_VERSION` if Scalestudy is not installed."""
    try:
        return metadata.version("scalestudy")
    except metadata.PackageNotFoundError:
        return UNKNOWN_VERSION


def own_source() -> Path | None:
    """Return the folder that Scalestudy is imported from; None if it is installed in site-packages."""
    # The parent of the package: `src` of a checkout, or where pip has put it.
    folder = Path(__file__).resolve().parents[2]
    # `dist-packages` is Debian's name for it.
    if folder.name in ("site-packages", "dist-packages"):
        return None
    return folder
