"""The best, median and worst validation samples as HTML: a page of its own, and a section of the report."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from scalestudy.analysis.runs import metric_label
from scalestudy.report.format import number
from scalestudy.report.images import data_uri
from scalestudy.study.gallery_record import GalleryRecord, GallerySample

if TYPE_CHECKING:
    import jinja2

TITLES = {"image": "image", "truth": "truth", "prediction": "prediction", "difference": "difference"}


@dataclass(frozen=True)
class Shown:
    """A sample as shown.

    Attributes:
        name: Of the sample.
        roles: Why it is shown.
        facts: Its loss, quality and class.
        wrong: Whether its class was mistaken.
        pictures: (title, description for those who do not see it, address) of each.
    """

    name: str
    roles: str
    facts: str
    wrong: bool
    pictures: tuple[tuple[str, str, str], ...]


def to_page(record: GalleryRecord, label: str) -> str:
    """Render a page that needs no network.

    Args:
        record: What to show.
        label: The model, for people.
    """
    from scalestudy import __version__

    template = environment().get_template("gallery.html.j2")
    return template.render(version=__version__, label=label, **section(record)) + "\n"


def section(record: GalleryRecord) -> dict[str, object]:
    """What the template of the samples needs."""
    among = f"{record.considered} of {record.of}" if record.considered < record.of else f"all {record.of}"
    return {
        "shown": [shown(sample, record) for sample in record.samples],
        "among": f"Chosen among {among} validation samples by the loss of each, and by its own "
        f"{metric_label(record.metric)}.",
        "masks": record.kind == "masks",
        "weights": record.weights,
    }


def shown(sample: GallerySample, record: GalleryRecord) -> Shown:
    """One sample in words and addresses."""
    facts = [f"loss {number(sample.loss, 4)}"]
    wrong = sample.truth is not None and sample.truth != sample.predicted
    if sample.predicted is None and sample.quality is not None:
        facts.append(f"{metric_label(record.metric)} {number(sample.quality, 3)}")
    if sample.predicted is not None:
        said = f"{sample.predicted} ({number(100 * (sample.probability or 0), 0)} %)"
        facts.append(f"predicted {said}, truth {sample.truth}" if wrong else f"{said}, right")
    described = "; ".join(facts)
    pictures = tuple(
        (TITLES[name] if len(sample.pictures) > 1 else "", f"{TITLES[name]} of {sample.name}: {described}",
         f"data:image/png;base64,{content}")
        for name, content in sample.pictures.items()
        if name in TITLES
    )  # fmt: skip
    label = metric_label(record.metric)
    roles = [role.replace(f" by {record.metric}", f" by {label}") for role in sample.roles]
    return Shown(sample.name, ", ".join(roles), described, wrong, pictures)


@cache
def environment() -> "jinja2.Environment":
    """The templates of this room."""
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("scalestudy.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.filters["data_uri"] = data_uri
    return templates
