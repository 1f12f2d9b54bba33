"""The launchers that `launch.on` can name; each is a `launch.base.Launcher`."""

from typing import Any

from scalestudy.util.registry import Registry

LAUNCHERS: Registry[Any] = Registry(
    "scalestudy.launchers",
    {
        "local": "scalestudy.launch.local.launcher:LOCAL",
        "slurm": "scalestudy.launch.slurm:SLURM",
        "pbs": "scalestudy.launch.pbs:PBS",
    },
)
DEFAULT = "local"


def names() -> list[str]:
    """Names that a study file may give, in the order in which they are shown."""
    return LAUNCHERS.names()
