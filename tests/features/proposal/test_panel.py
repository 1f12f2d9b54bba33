"""Panel files: errors are named, shipped files state their source, and all are documented."""

from datetime import date

import pytest

import panels
from paths import PROJECT
from scalestudy.features.proposal.facts import COLUMNS, FACTS
from scalestudy.features.proposal.page import FIGURES, compose
from scalestudy.features.proposal.panel import FUNCTIONS, find_panel, parse_panel, shipped_panels
from scalestudy.features.proposal.subject import RequestOptions
from scalestudy.util.errors import UserError

DOCS = (PROJECT / "docs" / "reference" / "panels.md").read_text()
PANEL = """+++
panel = "Ours"
title = "Our page"
unit = "GPU-h"
[[sources]]
address = "https://example.org"
read = 2026-01-02
+++

## Scaling

{# Speed-up #}
On {{ workers }} it is {{ speedup }} times faster.

{{ table("workers", "speedup") }}

{{ figure("speedup") }}

{{ study.advice.strategy }} is advised.
"""


def test_a_panel_is_what_its_file_says(tmp_path):
    file = tmp_path / "ours.md.j2"
    file.write_text(PANEL)
    panel = find_panel(str(file))
    assert (panel.panel, panel.base, panel.charge) == ("Ours", "device", 1.0)
    (title, parts), *_ = panel.sections()
    assert title == "Scaling"
    assert [asks for asks, _ in parts] == ["Speed-up", "Scaling", "Scaling", "Scaling"]
    page = compose(panels.full(), panel, RequestOptions(), panels.WORK)
    assert not page.gaps and "horovod is advised." in str(page.document)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{{ speedup", "{{ sped_up", "no fact `sped_up`; did you mean speedup"),
        ("{{ speedup }}", "{{ speedup", "end of print statement"),
        ('title = "Our page"', 'titel = "Our page"', "tit"),
        ('unit = "GPU-h"', 'unit = "h"\ncharge = 0', "charge"),
        ("read = 2026-01-02", 'read = "then"', "read"),
        ('panel = "Ours"\n', "", "panel"),
        ('panel = "Ours"\n', "panel = Ours\n", "valid TOML"),
        ("+++\npanel", "panel", "+++"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(old, new, words):
    with pytest.raises(UserError) as error:
        parse_panel(PANEL.replace(old, new), "ours.md.j2")
    assert "ours.md.j2" in str(error.value) and words in str(error.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"workers", "speedup"', '"sped"'),
        ('("speedup")', '("speed")'),
        ("study.advice", "study.advices"),
        ("{{ workers }}", "{{ workers.__class__.mro() }}"),
    ],
)
def test_an_unknown_column_or_figure_and_code_are_refused(old, new):
    with pytest.raises(UserError, match="Correct the panel file"):
        compose(
            panels.full(),
            parse_panel(PANEL.replace(old, new), "ours.md.j2"),
            RequestOptions(),
            panels.WORK,
        )


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(UserError, match=r"archer2.*Did you mean `archer2`"):
        find_panel("archer")
    with pytest.raises(UserError, match="does not exist"):
        find_panel("./none.md.j2")


@pytest.mark.parametrize("name", shipped_panels())
def test_a_shipped_panel_says_where_it_comes_from_and_asks_for_something(name):
    panel = find_panel(name)
    assert panel.assumed
    assert all(source.address.startswith("http") and source.says for source in panel.sources)
    assert all(source.read >= date(2026, 11, 22) for source in panel.sources)
    parts = [part for _, parts in panel.sections() for part in parts]
    assert sum("{{ request() }}" in template for _, template in parts) == 1
    assert all(asks for asks, _ in parts)


def test_every_name_that_a_panel_may_use_and_every_panel_is_in_the_documentation():
    names = [*FACTS, *COLUMNS, *FIGURES, *FUNCTIONS, *shipped_panels()]
    assert [name for name in names if f"`{name}`" not in DOCS] == []


def test_the_panel_of_the_documentation_works():
    text = DOCS.partition("```jinja\n")[2].partition("```")[0]
    assert not compose(panels.full(), parse_panel(text, "mine.md.j2"), RequestOptions(), panels.WORK).gaps
