"""Kinds of data, and the registry of named sources. Imports no heavy modules."""

from typing import Any, Literal

from scalestudy.util.registry import Registry

Kind = Literal["masks", "classes", "custom"]
"""A class for every pixel, a class for every sample, or samples that a task reads itself."""
SOURCES: Registry[Any] = Registry("scalestudy.sources")
"""Named sources: each is a class or function (argument, data) -> `sources.base.Source`.

The argument is the part after the colon in "NAME:ARGUMENT", or None; `data` is the section [data] of the
study file (`study.settings.DataSettings`).
"""


def named_source(source: str) -> str | None:
    """Return the name of the source "NAME" or "NAME:ARGUMENT"; None if `source` is a path.

    A folder of the same name is written `"./NAME"`.
    """
    name = source.partition(":")[0]
    return name if name in SOURCES else None
