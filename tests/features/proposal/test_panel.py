"""Panel files: what is wrong in one is named with its line."""

from datetime import date

import pytest

from scalestudy.features.proposal.find import shipped_panels
from scalestudy.features.proposal.panel import parse_panel
from scalestudy.features.proposal.vocabulary import vocabulary
from scalestudy.util.errors import UserError

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


def parse(text: str):
    return parse_panel(text, "ours.toml", vocabulary())


def test_a_panel_is_what_its_file_says():
    found = parse(PANEL)
    assert (found.name, found.base, found.charge) == ("ours", "device", 1.0)
    assert found.sections[0].parts[1].table == ("workers", "speedup")


@pytest.mark.parametrize(("old", "new", "line", "words"), [
    ("{speedup}", "{sped_up}", 10, "one of the facts"),
    ('"workers", "speedup"', '"workers", "sped"', 11, "one of the columns"),
    ('figure = "speedup"', 'figure = "speed"', 12, "`speedup`"),
    ("title = \"Our page\"", "titel = \"Our page\"", 2, "`titel`"),
    ("{ figure = \"speedup\" }", "{ figure = \"speedup\", text = \"x\" }", 12, "text and figure"),
    ("{ figure = \"speedup\" }", "{ asks = \"x\" }", 12, "none of them"),
    ("unit = \"GPU-h\"", "unit = \"\"", 3, "unit"),
    ("unit = \"GPU-h\"", "unit = \"h\"\ncharge = 0", 4, "charge"),
    ("read = 2026-01-02", "read = \"then\"", 6, "read"),
    ("panel = \"Ours\"\n", "panel = Ours\n", 1, "valid TOML"),
])  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(old, new, line, words):
    with pytest.raises(UserError) as error:
        parse(PANEL.replace(old, new))
    assert f"(ours.toml, line {line}" in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize("key", ["panel", "title", "unit"])
def test_what_is_missing_is_named(key):
    lines = [line for line in PANEL.splitlines() if not line.startswith(f"{key} =")]
    with pytest.raises(UserError, match=key):
        parse("\n".join(lines))


@pytest.mark.parametrize("name", shipped_panels())
def test_a_shipped_panel_says_where_it_comes_from_and_asks_for_something(name):
    panel = parse_panel(shipped_panels()[name], f"{name}.toml", vocabulary())
    assert panel.name == name
    assert panel.assumed
    assert all(source.address.startswith("http") and source.says for source in panel.sources)
    assert all(source.read >= date(2026, 11, 22) for source in panel.sources)
    parts = [part for section in panel.sections for part in section.parts]
    assert sum(part.request for part in parts) == 1
    assert all(part.asks or part.text for part in parts)
