"""Figures as pictures: all are drawn, and nothing is cut off where letters are wider."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.figures import figures, places
from scalestudy.report.images import draw, with_room

DRAWN = (
    '<svg xmlns="http://www.w3.org/2000/svg" version="1.1" class="marks" width="728" height="236"'
    ' viewBox="0 0 728 236"><rect width="728" height="236" fill="#FFFFFF"/>'
    '<g fill="none" transform="translate(100,83)"><text>horovod × 2</text></g></svg>'
)
STRATEGIES = ("single", "native", "mirrored", "multiworker", "horovod", "virtual")
STUDIES = {
    "one count": synthetic.seeded((1,), ("single",), seeds=1),
    "six strategies": synthetic.seeded((1, 4, 64, 256), STRATEGIES, seeds=2),
    "swept": [
        run
        for size in (8, 32)
        for rate in (0.1, 0.2)
        for run in synthetic.seeded((1, 2), seeds=1, swept={"a.size": size, "a.rate": rate})
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_every_figure_is_drawn(study):
    for drawing in places(figures(analyse("made", STUDIES[study]))):
        for figure in (drawing.figure, *drawing.choices[:2]):
            picture = draw(figure)
            assert picture.svg.startswith("<svg") and figure.title in picture.svg and "NaN" not in picture.svg
        assert picture.png.startswith(b"\x89PNG") and picture.pdf.startswith(b"%PDF-")


def test_labels_have_room_for_wider_letters_on_ground_of_the_same_colour():
    # A fifth of the 100 pixels on the left, and some on the right.
    assert with_room(DRAWN).startswith(
        '<svg xmlns="http://www.w3.org/2000/svg" version="1.1" class="marks" width="779" height="236"'
        ' viewBox="-22 0 779 236"><rect x="-22" width="779" height="236" fill="#FFFFFF"/>'
    )


def test_a_drawing_of_another_form_stays_as_it_is():
    assert with_room("<svg><path/></svg>") == "<svg><path/></svg>"
