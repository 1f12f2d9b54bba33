"""Importing TensorFlow and Keras without what they only look for, and without looking for garbage."""

import contextlib
import gc
import sys
from collections.abc import Iterator

UNUSED = ("sklearn",)
"""Keras takes scikit-learn, where it is installed, for wrappers in its style: hundreds of files that no
worker needs, and a fifth of the processor time of the import."""


@contextlib.contextmanager
def without_unused() -> Iterator[None]:
    """Within, packages that are not needed count as not installed. Afterwards they can be imported.

    Nor is garbage collected within, a sixth of the import's processor time: what is imported stays. The
    collector is told so afterwards, and leaves it out from then on.
    """
    hidden = [name for name in UNUSED if name not in sys.modules]
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
