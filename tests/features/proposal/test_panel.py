"""Panels: what is wrong in a file is named, shipped ones say where they come from, and all are documented."""

from datetime import date

import pytest

import told
from paths import PROJECT
from scalestudy.features.proposal.columns import COLUMNS
from scalestudy.features.proposal.facts import FACTS
from scalestudy.features.proposal.page import compose
from scalestudy.features.proposal.panel import FIGURES, find_panel, parse_panel, shipped_panels
from scalestudy.features.proposal.subject import RequestOptions
from scalestudy.util.errors import UserError

DOCS = (PROJECT / "docs" / "proposal.md").read_text()
PANEL = """panel = "Ours"
title = "Our page"
unit = "GPU-h"
[[sources]]
address = "https://example.org"
read = 2026-01-02
[[sections]]
title = "Scaling"
parts = [
    { text = "On {workers} it is {speedup} times faster.", asks = "Speed-up" },
    { table = ["workers", "speedup"] },
    { figure = "speedup" },
]
"""


def test_a_panel_is_what_its_file_says(tmp_path):
    file = tmp_path / "ours.toml"
    file.write_text(PANEL)
    panel = find_panel(str(file))
    assert (panel.panel, panel.base, panel.charge) == ("Ours", "device", 1.0)
    assert panel.sections[0].parts[1].table == ("workers", "speedup")


@pytest.mark.parametrize(("old", "new", "words"), [
    ("{speedup}", "{sped_up}", "no fact `sped_up`; did you mean speedup"),
    ('"workers", "speedup"', '"workers", "sped"', "no column `sped`"),
    ('figure = "speedup"', 'figure = "speed"', "no figure `speed`"),
    ("title = \"Our page\"", "titel = \"Our page\"", "tit"),
    ("{ figure = \"speedup\" }", "{ figure = \"speedup\", text = \"x\" }", "text and figure"),
    ("{ figure = \"speedup\" }", "{ asks = \"x\" }", "none"),
    ("unit = \"GPU-h\"", "unit = \"h\"\ncharge = 0", "charge"),
    ("read = 2026-01-02", "read = \"then\"", "read"),
    ("panel = \"Ours\"\n", "", "panel"),
    ("panel = \"Ours\"\n", "panel = Ours\n", "valid TOML"),
])  # fmt: skip
def test_what_is_wrong_in_a_file_is_named(old, new, words):
    with pytest.raises(UserError) as error:
        parse_panel(PANEL.replace(old, new), "ours.toml")
    assert "ours.toml" in str(error.value) and words in str(error.value)


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(UserError, match=r"archer2.*Did you mean `archer2`"):
        find_panel("archer")
    with pytest.raises(UserError, match="does not exist"):
        find_panel("./none.toml")


@pytest.mark.parametrize("name", shipped_panels())
def test_a_shipped_panel_says_where_it_comes_from_and_asks_for_something(name):
    panel = find_panel(name)
    assert panel.assumed
    assert all(source.address.startswith("http") and source.says for source in panel.sources)
    assert all(source.read >= date(2026, 11, 22) for source in panel.sources)
    parts = [part for section in panel.sections for part in section.parts]
    assert sum(part.request for part in parts) == 1
    assert all(part.asks or part.text for part in parts)


def test_every_name_that_a_panel_may_use_and_every_panel_is_in_the_documentation():
    names = [*FACTS, *COLUMNS, *FIGURES, *shipped_panels()]
    assert [name for name in names if f"`{name}`" not in DOCS] == []


def test_the_panel_of_the_documentation_works():
    text = DOCS.partition("```toml\n")[2].partition("```")[0]
    assert not compose(told.full(), parse_panel(text, "mine.toml"), RequestOptions(), told.WORK).gaps
