"""A set before it is trained on, as one HTML page that needs no network."""

from collections.abc import Sequence
from pathlib import Path

from scalestudy.data.images import pictures
from scalestudy.errors import UserError
from scalestudy.features.inspect.data_text import counts, named, share
from scalestudy.features.inspect.shown import Shown
from scalestudy.files import write_atomically

MOST_NAMES = 50
"""Samples that a finding names on the page."""
MOST_SIZES = 30


def write_data_page(file: Path, shown: Sequence[Shown]) -> None:
    """Write the page.

    Raises:
        UserError: The file is no page by its name, or cannot be written.
    """
    check_name(file)
    try:
        write_atomically(file, to_page(shown))
    except OSError as error:
        raise UserError(
            "a file that can be written", f"{file}: {error.strerror}", "Name another one with --html."
        ) from error


def check_name(file: Path) -> None:
    """Refuse a file that is no page.

    Raises:
        UserError: Its name ends otherwise.
    """
    if file.suffix.lower() not in (".html", ".htm"):
        raise UserError("a file that ends in .html", str(file), "Name it so.")


def to_page(shown: Sequence[Shown]) -> str:
    """The page of one set or several: light and dark, on a screen or a phone."""
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
    environment.filters |= {"data_uri": data_uri, "png": pictures.png, "share": share, "counts": counts}
    environment.globals |= {"named": named, "colour": _colour}
    page: str = environment.get_template("data.html.j2").render(
        version=__version__, sets=shown, most_names=MOST_NAMES, most_sizes=MOST_SIZES
    )
    return page + "\n"


def _colour(index: int) -> str:
    """Of a class where masks are laid over, as in CSS."""
    return "#{:02x}{:02x}{:02x}".format(*pictures.palette()[index])
