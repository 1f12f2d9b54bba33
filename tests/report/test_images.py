"""All figures can be drawn as pictures."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.figures import figures, places
from scalestudy.report.images import Picture

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
            picture = Picture(figure)
            assert picture.svg.startswith("<svg") and figure.title in picture.svg and "NaN" not in picture.svg
        assert picture.png.startswith(b"\x89PNG") and picture.pdf.startswith(b"%PDF-")
