"""What is written of panels is what there is."""

from pathlib import Path

import pytest

import told
from scalestudy.features.proposal.find import shipped_panels
from scalestudy.features.proposal.page import statement
from scalestudy.features.proposal.panel import parse_panel
from scalestudy.features.proposal.subject import Ask
from scalestudy.features.proposal.vocabulary import vocabulary

DOCS = Path(__file__).parents[3] / "docs" / "proposal.md"


@pytest.mark.parametrize("kind", ["facts", "columns", "figures"])
def test_every_name_that_a_panel_may_use_is_in_the_documentation(kind):
    text = DOCS.read_text()
    assert [name for name in vocabulary()[kind] if f"`{name}`" not in text] == []


def test_every_shipped_panel_is_in_the_documentation():
    text = DOCS.read_text()
    assert [name for name in shipped_panels() if f"| `{name}` |" not in text] == []


def test_the_panel_of_the_documentation_works():
    text = DOCS.read_text().partition("```toml\n")[2].partition("```")[0]
    made = statement(told.full(), parse_panel(text, "mine.toml", vocabulary()), Ask(), told.WORK)
    assert not made.gaps
