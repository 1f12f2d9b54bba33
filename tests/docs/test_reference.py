"""Hand-written tables of the reference are complete: columns, topics, metrics."""

import re

from paths import PROJECT, SOURCE
from scalestudy.analysis.costs import Costs, cost_columns
from scalestudy.analysis.study_table import RUN_FIELDS, columns
from scalestudy.config.objectives import METRICS
from scalestudy.config.operations import KINDS
from scalestudy.features.check.check_report import TOPICS

REFERENCE = PROJECT / "docs" / "reference"


def section(page: str, anchor: str) -> str:
    """Return the text below this heading, up to the next heading of its level."""
    text = (REFERENCE / page).read_text("utf-8")
    (level, rest), *_ = re.findall(
        rf"^(#+) [^\n]*{{ #{anchor} }}\n(.*)", text, re.MULTILINE | re.DOTALL
    )
    return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


def named(text: str) -> list[str]:
    """Return code words in the first column of a section's tables; a ± adds the interval's ends."""
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    words = [word for cell in cells for word in re.findall(r"`([\w-]+)`( ±)?", cell)]
    return [
        name + end
        for name, sign in words
        for end in (("", "_low", "_high") if sign else ("",))
    ]


def test_columns() -> None:
    rows = named(section("tables.md", "rows"))
    assert sorted([*rows, *cost_columns()]) == sorted(columns())
    assert re.findall(r"^ {8}(\w+): ", Costs.__doc__ or "", re.MULTILINE) == [
        *cost_columns()
    ]
    assert sorted(named(section("tables.md", "runs"))) == sorted(
        [*RUN_FIELDS, "folder"]
    )


def test_topics_of_checks() -> None:
    assert named(section("check.md", "topics")) == [*TOPICS]


def test_every_metric_is_explained() -> None:
    text = (REFERENCE / "losses-and-metrics.md").read_text("utf-8")
    assert [
        name for name in METRICS if f"`{name}" not in text.partition("## Metrics")[2]
    ] == []


def test_operations_of_augmentation_with_their_defaults() -> None:
    text = (REFERENCE / "augmentation.md").read_text("utf-8")
    rows = re.findall(
        r"^\| `(\w+)(?:\(([\w, ]+)\))?` \|.*\|\s*([^|]*?)\s*\|$", text, re.MULTILINE
    )
    told = {
        name: dict(
            zip(re.findall(r"\w+", names), re.findall(r"[\w.]+", defaults), strict=True)
        )
        for name, names, defaults in rows
    }
    known = {
        name: {
            key: f"{allowed.default:g}" if not allowed.words else allowed.default
            for key, allowed in values.items()
        }
        for name, values in KINDS.items()
    }
    assert told == known


def test_names_of_a_task_file() -> None:
    source = (SOURCE / "scalestudy" / "tasks" / "trial.py").read_text(
        "utf-8"
    )  # it imports a framework
    (optional,) = re.findall(r'^_NAMES = """(.*?)"""', source, re.MULTILINE | re.DOTALL)
    page = (REFERENCE / "task-file.md").read_text("utf-8")
    assert [
        name
        for name in ("model", "loss", "metrics", *optional.split())
        if f"`{name}" not in page
    ] == []
