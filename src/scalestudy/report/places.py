"""The places of figures on the report's page, and what its scripts draw them from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from scalestudy.report.figure import Figure
from scalestudy.report.images import Picture
from scalestudy.report.style import config


@dataclass(frozen=True)
class Place:
    """One place: the figure that stands there at first, drawn, and all that can be chosen in it."""

    first: Picture
    choices: tuple[Figure, ...]

    @property
    def name(self) -> str:
        """By which links find it."""
        return self.choices[0].group or self.choices[0].name


def places(pictures: Sequence[Picture]) -> list[Place]:
    """Figures by their places, in the order in which these are first named."""
    groups: dict[str, list[Picture]] = {}
    for picture in pictures:
        groups.setdefault(picture.figure.group or picture.figure.name, []).append(picture)
    return [Place(found[0], tuple(each.figure for each in found)) for found in groups.values()]


def drawing(pictures: Sequence[Picture]) -> dict[str, Any]:
    """What the scripts need: themes, specifications with their words, and data, each kept once."""
    datasets: dict[str, Any] = {}
    figures = {}
    for figure in (picture.figure for picture in pictures):
        spec = {key: value for key, value in figure.spec.items() if key != "title"}
        datasets |= spec.get("datasets", {})
        spec["datasets"] = list(spec.get("datasets", {}))
        figures[figure.name] = {"title": figure.title, "caption": figure.caption, "spec": spec}
    light = config() | {"background": "transparent"}
    return {"light": light, "dark": config(dark=True), "figures": figures, "datasets": datasets}


@cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that is safe inside a `<script>` element."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    # The snippet is optional; the type stubs say otherwise.
    script: str = vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
    # Inside a script's strings "<\/script" means the same and does not end the element.
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
