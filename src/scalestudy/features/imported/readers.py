"""The forms of numbers taken elsewhere, in the order in which a file is tried.

A package adds one by an entry point in the group "scalestudy.readers" that names a `Reader`.
"""

from scalestudy.features.imported.base import Head, Reader
from scalestudy.registry import Registry

READERS: Registry[Reader] = Registry(
    "scalestudy.readers",
    {
        "tensorboard": "scalestudy.features.imported.tensorboard:READER",
        "parquet": "scalestudy.features.imported.parquet:READER",
        "json": "scalestudy.features.imported.json_lines:READER",
        "table": "scalestudy.features.imported.delimited:READER",
    },
)


def reader_of(head: Head) -> Reader | None:
    """The reader of a file that begins so; others' go before ours, since theirs know what they look for."""
    ours = READERS.built_in()
    names = [*(name for name in READERS.names() if name not in ours), *ours]
    return next((READERS.get(name) for name in names if READERS.get(name).recognises(head)), None)
