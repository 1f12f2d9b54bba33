"""Tables of the reference that are written by hand are complete: columns, topics, layouts, metrics."""

import re
from typing import get_args

from paths import PROJECT
from scalestudy.analysis.costs import COLUMNS
from scalestudy.analysis.table import RUN_FIELDS, columns
from scalestudy.features.check.report import TOPICS
from scalestudy.study.objectives import METRICS
from scalestudy.study.settings import DataSettings

REFERENCE = PROJECT / "docs" / "reference"


def section(page: str, anchor: str) -> str:
    """The text under the heading of that name, up to the next of its level."""
    text = (REFERENCE / page).read_text("utf-8")
    (level, rest), *_ = re.findall(rf"^(#+) [^\n]*{{ #{anchor} }}\n(.*)", text, re.MULTILINE | re.DOTALL)
    return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


def named(text: str) -> list[str]:
    """Words in code in the first cells of a section's tables."""
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)]


def test_columns() -> None:
    costs = named(section("tables.md", "costs"))
    rows = named(section("tables.md", "rows"))
    assert costs == [*COLUMNS]
    assert sorted([*rows, *costs]) == sorted(columns())
    assert [name for name in rows if name in columns()] == rows
    assert sorted(named(section("tables.md", "runs"))) == sorted([*RUN_FIELDS, "folder"])


def test_topics_of_checks() -> None:
    assert named(section("check.md", "topics")) == [*TOPICS]


def test_layouts() -> None:
    (choices,) = (part for part in get_args(DataSettings.model_fields["layout"].annotation) if get_args(part))
    assert {*named(section("data.md", "layouts"))} == {*get_args(choices)}


def test_every_metric_is_explained() -> None:
    text = (REFERENCE / "losses-and-metrics.md").read_text("utf-8")
    assert [name for name in METRICS if f"`{name}" not in text.partition("## Metrics")[2]] == []
