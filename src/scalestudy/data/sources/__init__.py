"""Sources of samples, and the registry of those with a name. Imports no heavy modules."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from scalestudy.util.registry import Registry

if TYPE_CHECKING:
    from scalestudy.config.settings import DataSettings
    from scalestudy.data.sources.source import Source

SOURCES: "Registry[Callable[[str | None, DataSettings], Source]]" = Registry(
    "scalestudy.sources"
)
"""Named sources: each is a class or function (argument, data) -> `source.Source`.

The argument is the part after the colon in "NAME:ARGUMENT", or None; `data` is the section [data] of the
study file (`config.settings.DataSettings`).
"""


def named_source(source: str) -> str | None:
    """Return the name of the source "NAME" or "NAME:ARGUMENT"; None if `source` is a path.

    A folder of the same name is written `"./NAME"`.
    """
    name = source.partition(":")[0]
    return name if name in SOURCES else None
