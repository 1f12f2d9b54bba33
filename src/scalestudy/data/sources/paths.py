"""Paths in a study file: folders of sources, and of prepared sets."""

import os
import re
from pathlib import Path

import platformdirs

from scalestudy.data.sources import named_source
from scalestudy.util.errors import UserError


def folder_of(source: str, base: Path) -> Path | None:
    """Return the folder of a source with links resolved; None for a file or a named source."""
    if named_source(source) is not None:
        return None
    path = os.path.realpath(expand_path(source, base))
    return Path(path) if os.path.isdir(path) else None


def expand_path(text: str, base: Path) -> Path:
    """Return an absolute path: expand `~` and environment variables; relative paths start at `base`.

    Raises:
        UserError: If a variable is not set.
    """
    expanded = os.path.expanduser(os.path.expandvars(text))
    unset = re.search(r"\$(\w+|\{\w+\})", expanded)
    if unset and not Path(base, expanded).exists():
        raise UserError(
            f"the environment variable {unset[1].strip('{}')} to be set",
            f"{text!r} without it",
            "Set it, or write the path out.",
        )
    return Path(os.path.abspath(Path(base, expanded)))


def cache_folder(cache: str | Path | None, base: Path = Path(".")) -> Path:
    """Return the folder of prepared data sets: `cache` relative to `base`, or the user's cache folder."""
    if cache is not None:
        return expand_path(str(cache), base)
    return Path(platformdirs.user_cache_dir("scalestudy", appauthor=False)) / "prepared"
