"""Launchers by name."""

from scalestudy.errors import UserError
from scalestudy.launch.base import Launcher
from scalestudy.study.file import Study
from scalestudy.study.launchers import LAUNCHERS, names


def launcher(name: str) -> Launcher:
    """The launcher of this name.

    Raises:
        UserError: There is none here, though a study may have been made where there was.
    """
    if name not in LAUNCHERS:
        raise UserError(
            f"a launcher out of {', '.join(names())}",
            f'launch.on = "{name}"',
            "Install the package that brings it, or correct launch.on.",
        )
    found: Launcher = LAUNCHERS.get(name)
    return found


def launcher_of(study: Study) -> Launcher:
    """The launcher of a study."""
    return launcher(study.launch.on)


def queues() -> list[str]:
    """Names of the launchers that outlive this process."""
    return [name for name in names() if launcher(name).outlives]
