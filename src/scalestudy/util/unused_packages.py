"""Import a framework without packages that it offers but we never use."""

import contextlib
import gc
import sys
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def without_unused(unused: Sequence[str]) -> Iterator[None]:
    """Within the context, treat these packages, which are not needed, as not installed.

    Garbage collection, a sixth of the import's processor time, is also disabled. Imported objects stay alive,
    so they are frozen at the end, and the collector ignores them from then on.
    """
    # What is imported already stays: others may hold it.
    hidden = [name for name in unused if name not in sys.modules]
    for name in hidden:
        # Python's own sign for "not to be found".
        sys.modules[name] = None  # type: ignore[assignment]
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
