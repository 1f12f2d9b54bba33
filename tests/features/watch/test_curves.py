import math
from itertools import pairwise

from scalestudy.features.watch.curves import braille, meter, sparkline


def dots(lines: list[str]) -> list[list[int]]:
    """Rows (from the top) of the dots that are set in each column."""
    left, right = (0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80)
    bits = {bit: (row, side) for side, column in enumerate((left, right)) for row, bit in enumerate(column)}
    columns: list[list[int]] = [[] for _ in range(2 * len(lines[0]))]
    for number, line in enumerate(lines):
        for place, character in enumerate(line):
            for bit, (row, column) in bits.items():
                if ord(character) - 0x2800 & bit:
                    columns[2 * place + column].append(4 * number + row)
    return columns


def test_a_sparkline_is_high_where_values_are_and_holds_all_of_them():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([7.0] * 100 + [0.0] * 100, 2) == "█▁"
    assert sparkline([1.0, math.nan, 2.0], 5) == "▁ █"
    assert sparkline([], 5) == sparkline([math.nan], 5) == ""


def test_a_curve_falls_from_its_first_to_its_last_value_without_gaps():
    columns = dots(braille([3.0, 2.0, 1.0], 4, 2))
    assert min(columns[0]) == 0 and max(columns[-1]) == 7
    assert all(columns)
    ends = [(min(column), max(column)) for column in columns]
    assert all(top <= last + 1 for (_, last), (top, _) in pairwise(ends))


def test_a_curve_over_many_powers_of_ten_is_drawn_by_its_logarithm():
    columns = dots(braille([1000.0, 10.0, 0.1], 3, 2))
    middle = columns[len(columns) // 2]
    assert min(middle) <= 4 <= max(middle) + 1


def test_a_curve_of_nothing_is_empty_lines():
    assert braille([], 4, 2) == braille([math.inf], 4, 2) == ["", ""]


def test_a_meter_is_full_at_a_hundred_per_cent_and_never_fuller():
    assert meter(100, 4) == meter(180, 4) == "████" and meter(0, 4) == meter(-3, 4) == "    "
    assert meter(50, 4) == "██  " and meter(3.2, 4) == "▏   "
