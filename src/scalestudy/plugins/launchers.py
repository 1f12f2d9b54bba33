"""The launchers that `launch.on` can name; each is a `launch.base.Launcher`."""

from typing import Any

from scalestudy.util.registry import Registry

LAUNCHERS: Registry[Any] = Registry("scalestudy.launchers")
DEFAULT = "local"
WITHOUT_SITE = (DEFAULT, "hosts")
"""Launchers without a queue, and so without a site profile."""


def names() -> list[str]:
    """Names that a study file may give, in the order in which they are shown."""
    return LAUNCHERS.names()
