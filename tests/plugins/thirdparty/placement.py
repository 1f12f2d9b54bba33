"""The placement of the processes of a launcher that only this package knows."""

from collections.abc import Mapping

from scalestudy import Placement


def placement(environment: Mapping[str, str]) -> Placement | None:
    if "THIRDPARTY_RANK" not in environment:
        return None
    return Placement(
        int(environment["THIRDPARTY_RANK"]), 2, 0, 1, 0, ("one", "other"), "thirdparty"
    )
