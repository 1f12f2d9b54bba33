"""A document in a terminal."""

from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import Document, Table, headings_of
from scalestudy.report.write_document import escaped, markdown
from synthetic_document import document


def test_words_lists_tables_and_folded_parts_are_shown():
    text = terminal(document(), 100)
    for part in (
        "For a panel",
        "launch.cpus_per_worker = 4",
        "1. first",
        "3.44",
        "[1] Of one run.",
        "Logs",
    ):
        assert part in text


def test_a_narrow_terminal_gets_the_brief_headings_and_no_longer_lines():
    lines = terminal(document(), 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert any(line.split()[-1:] == ["S"] for line in lines)


def test_texts_of_others_hold_no_control_sequences():
    from scalestudy.report.document import Document, Paragraph

    assert "\x1b" not in terminal(Document("a", (Paragraph("\x1b[31mred"),)))


def test_sections_nest_and_tables_have_a_line_for_each_row():
    lines = markdown(document()).splitlines()
    assert "## Results" in lines
    assert "### By node" in lines
    assert "| Strategy | Speed-up (throughput) |" in lines
    assert "| --- | ---: |" in lines
    assert "| mirrored | 1.00 |" in lines


def test_texts_stand_as_they_are_and_code_stays_code():
    assert escaped("see https://a.org/b_c_d (x_y)") == r"see https://a.org/b_c_d (x\_y)"
    assert escaped("a_b | <c> `d_e`") == r"a\_b \| \<c\> `d_e`"


def test_a_fence_is_longer_than_any_in_the_code():
    assert "````text\na  b\n```\n" in markdown(document())


def test_a_figure_is_an_image_where_it_has_an_address_and_its_caption_where_not():
    assert "](speedup.svg)" in markdown(document(), {"speedup": "speedup.svg"})
    assert "![" not in markdown(document())
    assert "**Speed-up" in markdown(document())


def test_a_path_that_is_too_long_for_a_column_is_not_folded():
    path = "/scratch/project_2000001/" + "a-rather-long-name/" * 4
    table = Table(
        headings_of("What:", "ours:", "theirs:"), (("data.source", path, "digits"),)
    )
    text = terminal(Document("t", (table,)), 80)
    assert f"  ours: {path}\n" in text and "  theirs: digits\n" in text
    assert "ours:" not in terminal(Document("t", (table,)), 200)
