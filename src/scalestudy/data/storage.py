"""How the rows of a set are kept: as arrays, or encoded."""

import shutil
from pathlib import Path
from typing import Literal

from scalestudy.data.store_rows import Storage
from scalestudy.machine.memory import memory_limit


def candidates(asked: Literal["auto", "arrays", "encoded"]) -> tuple[Storage, ...]:
    """What may be meant; where that is left open, a set that is there already is taken, arrays first."""
    return ("arrays", "encoded") if asked == "auto" else (asked,)


def chosen(asked: Literal["auto", "arrays", "encoded"], needed: int, cache: Path) -> Storage:
    """What a set that is not there yet is made as.

    Args:
        asked: "auto" chooses arrays, unless they are larger than the memory that this process may use, or
            than the free space of the cache's disk.
        needed: Bytes of the arrays.
        cache: Where it will lie; it need not exist yet.
    """
    if asked != "auto":
        return asked
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    return "arrays" if needed <= min(memory_limit(), shutil.disk_usage(there).free) else "encoded"
