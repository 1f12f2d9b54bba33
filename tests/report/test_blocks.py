"""Pictures in a terminal: two pixels a character."""

import numpy as np
from rich.console import Console

from scalestudy.report.blocks import UPPER_HALF, blocks


def test_a_character_holds_two_pixels_one_above_the_other():
    picture = np.zeros((4, 2, 3), np.uint8)
    picture[0, 0], picture[1, 0] = (255, 0, 0), (0, 0, 255)
    text = blocks([picture], 2)
    assert text.plain == f"{UPPER_HALF * 2}\n" * 2
    first = text.spans[0].style
    assert first.color.triplet == (255, 0, 0) and first.bgcolor.triplet == (0, 0, 255)


def test_pictures_stand_beside_each_other_in_the_width_they_are_given():
    wide, tall = np.zeros((10, 40, 3), np.uint8), np.zeros((40, 10, 3), np.uint8)
    lines = blocks([wide, tall], 8).plain.splitlines()
    assert {len(line) for line in lines} == {8 + 2 + 8}
    assert lines[0] == f"{UPPER_HALF * 8}  {UPPER_HALF * 8}"
    assert lines[-1] == f"{' ' * 8}  {UPPER_HALF * 8}"
    assert len(lines) == 16


def test_colours_become_those_that_the_terminal_has():
    for red, system, code in ((200, "truecolor", "38;2;200;30;30"), (90, "256", "38;5;")):
        picture = np.full((2, 1, 3), (red, 30, 30), np.uint8)
        console = Console(force_terminal=True, color_system=system, width=20)
        with console.capture() as captured:
            console.print(blocks([picture], 1))
        assert code in captured.get()
