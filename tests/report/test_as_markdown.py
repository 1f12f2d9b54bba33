"""A document as Markdown."""

from scalestudy.report.as_markdown import escaped, markdown
from synthetic_document import document


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
