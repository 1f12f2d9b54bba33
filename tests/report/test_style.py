"""Colours that all readers can distinguish, with different shapes.

Colour vision deficiencies are simulated as in Machado, Oliveira and Fernandes, "A physiologically-based
model for simulation of color vision deficiency" (IEEE TVCG 15, 2009), at full severity on linear RGB.
Differences are distances in CIELAB under D65 (CIE 1976); 2.3 is just noticeable (Mahy et al., 1994).
"""

from itertools import combinations, pairwise

import numpy as np
import pytest

from scalestudy.report.style import COLOURS, ramp, series_style
from scalestudy.study.strategies import REGISTRY, traits

VISIONS = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039],
    ],
}  # fmt: skip
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
WHITE = TO_XYZ.sum(axis=1)
CLEAR = 10.0
"""Distance at which two line colours can be distinguished at a glance."""


def lab(colour, vision):
    """Return a colour in CIELAB as seen with this colour vision."""
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(VISIONS[vision]) @ linear, 0, 1)
    share = TO_XYZ @ seen / WHITE
    x, y, z = np.where(share > (6 / 29) ** 3, np.cbrt(share), share / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, vision):
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def test_the_distance_is_what_it_says():
    assert distance("#FFFFFF", "#000000", "normal") == pytest.approx(100, abs=0.1)
    # Without the cones for one of them, red and green of equal lightness look alike.
    assert distance("#C80000", "#5A6E00", "deuteranopia") < distance("#C80000", "#5A6E00", "normal") / 3


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_of_strategies_are_far_apart_for_every_colour_vision(vision):
    colours = [traits(name).colour for name in REGISTRY.built_in()]
    pairs = {pair: distance(*pair, vision) for pair in combinations(colours, 2)}
    assert min(pairs.values()) > CLEAR, min(pairs, key=pairs.get)


@pytest.mark.parametrize("vision", VISIONS)
def test_the_first_colours_of_series_are_far_apart_for_every_colour_vision(vision):
    pairs = {pair: distance(*pair, vision) for pair in combinations(COLOURS[:6], 2)}
    assert min(pairs.values()) > CLEAR, min(pairs, key=pairs.get)


@pytest.mark.parametrize("vision", VISIONS)
def test_neighbours_on_the_ramp_of_counts_are_told_apart(vision):
    colours = ramp(6)
    assert min(distance(a, b, vision) for a, b in pairwise(colours)) > CLEAR


def test_strategies_differ_in_shape_too():
    names = REGISTRY.built_in()
    assert len(set(series_style(names, by_strategy=True)[1])) == len(names)
