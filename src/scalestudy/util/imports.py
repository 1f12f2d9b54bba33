"""Importing a framework without what it only looks for, and without looking for garbage."""

import contextlib
import gc
import sys
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def without_unused(unused: Sequence[str]) -> Iterator[None]:
    """Within, these packages, which are not needed, count as not installed. Afterwards they can be imported.

    Nor is garbage collected within, a sixth of the import's processor time: what is imported stays. The
    collector is told so afterwards, and leaves it out from then on.
    """
    hidden = [name for name in unused if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment] # Python's own sign for "not to be found"
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
        gc.freeze()
        if collecting:
            gc.enable()
