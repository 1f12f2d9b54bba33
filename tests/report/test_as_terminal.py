"""A document in a terminal."""

from scalestudy.report.as_terminal import terminal
from synthetic_document import document


def test_words_lists_tables_and_folded_parts_are_shown():
    text = terminal(document(), 100)
    for part in ("For a panel", "launch.cpus_per_worker = 4", "1. first", "3.44", "[1] Of one run.", "Logs"):
        assert part in text


def test_a_narrow_terminal_gets_the_brief_headings_and_no_longer_lines():
    lines = terminal(document(), 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert any(line.split()[-1:] == ["S"] for line in lines)


def test_texts_of_others_hold_no_control_sequences():
    from scalestudy.report.document import Document, Paragraph

    assert "\x1b" not in terminal(Document("a", (Paragraph("\x1b[31mred"),)))
