"""What kinds of data there are, and which sources have a name. Imports nothing heavy."""

from typing import Any, Literal

from scalestudy.util.registry import Registry

Kind = Literal["masks", "classes", "custom"]
"""A class for every pixel, a class for every sample, or whatever a task reads itself."""
SOURCES: Registry[Any] = Registry(
    "scalestudy.sources",
    {
        "indents": "scalestudy.data.sources.indents:Indents",
        "digits": "scalestudy.data.sources.digits:Digits",
        "keras": "scalestudy.data.sources.public.sets:keras",
        "tfds": "scalestudy.data.sources.public.tfds:tfds",
        "indents@zenodo": "scalestudy.data.sources.public.sets:zenodo_indents",
    },
)
"""Sources that are no path: each a class or function (argument, data) -> `source.Source`.

The argument is what stands after the colon in "NAME:ARGUMENT", None without one; `data` is the
section [data] of the study file (`study.settings.DataSettings`): image size, seed, and how else to read.
"""


def named_source(source: str) -> str | None:
    """Name of the source that `source` asks for, as "NAME" or "NAME:ARGUMENT"; None when it is a path.

    A folder of that name is `"./NAME"`.
    """
    name = source.partition(":")[0]
    return name if name in SOURCES else None
