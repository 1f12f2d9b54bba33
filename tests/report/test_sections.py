"""What a report says beyond its table."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report import sections as room
from scalestudy.report.document import Paragraph, Section
from scalestudy.report.html import to_html
from scalestudy.report.terminal import render_text


def test_a_section_stands_in_the_page_and_in_the_terminal(monkeypatch: pytest.MonkeyPatch):
    said = Section("A subject", (Paragraph("A sentence on it."),))
    monkeypatch.setattr(room.SECTIONS, "names", lambda: ["said", "nothing"])
    monkeypatch.setattr(room.SECTIONS, "get", {"said": lambda _: said, "nothing": lambda _: None}.get)
    findings = analyse("made", synthetic.seeded((1, 2), ("mirrored",)))
    assert "A sentence on it." in render_text(findings, verbose=True)
    page = to_html(findings, [])
    assert '<h2 id="a-subject">A subject</h2>' in page
    assert page.index("A subject") < page.index("How this was measured")
