"""A node's topology as a file: a page, or one picture."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalestudy.errors import UserError
from scalestudy.features.topology.figures import topology_figures, topology_picture
from scalestudy.features.topology.pairs import Pairs
from scalestudy.features.topology.units import Topology, ranges
from scalestudy.files import write_atomically
from scalestudy.measure.bandwidth import AllReduce
from scalestudy.report.figure import Figure
from scalestudy.report.images import draw

ENDINGS = (".svg", ".png", ".html")


def check_ending(file: Path) -> None:
    """Refuse a file that is no picture and no page.

    Raises:
        UserError: Its name ends otherwise.
    """
    if file.suffix.lower() not in ENDINGS:
        raise UserError(
            f"a file that ends in {', '.join(ENDINGS)}", str(file), "Name it so: the ending decides."
        )


def write_topology(
    file: Path, topology: Topology, pairs: Pairs | None, sums: Sequence[AllReduce], host: str
) -> None:
    """Write the picture or page that the file's ending asks for.

    Raises:
        UserError: The ending is another, or the file cannot be written.
    """
    check_ending(file)
    ending = file.suffix.lower()
    if ending == ".html":
        content: str | bytes = to_page(topology, pairs, sums, host)
    else:
        picture = draw(topology_picture(topology, pairs, sums, host))
        content = picture.png if ending == ".png" else picture.svg
    try:
        write_atomically(file, content)
    except OSError as error:
        raise UserError(
            "a file that can be written", f"{file}: {error.strerror}", "Name another one with --out."
        ) from error


def to_page(topology: Topology, pairs: Pairs | None, sums: Sequence[AllReduce], host: str) -> str:
    """One HTML page that needs no network, readable on a phone."""
    import jinja2

    from scalestudy import __version__
    from scalestudy.report.images import data_uri

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("scalestudy.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"data_uri": data_uri, "ranges": ranges}
    figures = topology_figures(topology, pairs, sums, host)
    page: str = environment.get_template("topology.html.j2").render(
        title=f"Topology of {host}",
        version=__version__,
        remarks=topology.remarks,
        units=topology.units,
        legend=topology.legend(),
        pictures=[_still(figure) for figure in figures],
    )
    return page + "\n"


def _still(figure: Figure) -> dict[str, Any]:
    """A figure for light and dark ground, without the title and legend of links, which the page writes."""
    spec = json.loads(json.dumps({key: value for key, value in figure.spec.items() if key != "title"}))
    if figure.name == "links":
        for layer in spec["layer"]:
            if layer["encoding"]["color"].get("field") == "kind":
                layer["encoding"]["color"]["legend"] = None
    bare = replace(figure, spec=spec)
    light = draw(bare).svg
    width = re.search(r'<svg[^>]* width="([0-9.]+)"', light)
    return {
        "figure": figure,
        "light": light,
        "dark": draw(bare, dark=True).svg,
        "width": math.ceil(float(width[1])) if width else 600,
    }
