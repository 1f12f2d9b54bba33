"""Where Scalestudy itself is imported from."""

from pathlib import Path

import scalestudy


def own_source() -> Path | None:
    """The folder that Scalestudy is imported from, where it is not installed like any other package.

    A container does not hold that folder, and what it has installed may be another version.
    """
    folder = Path(scalestudy.__file__).resolve().parents[1]
    return None if folder.name in ("site-packages", "dist-packages") else folder
