"""The indent: a three-sided pyramid (as of a Berkovich tip) pressed into the surface."""

from dataclasses import dataclass

import numpy as np

from scalestudy.data.sources.micrographs.fields import Field, Size, uniform, unit


@dataclass(frozen=True)
class Window:
    """The part of an image around an indent: its slices, and signed distances of its pixels.

    `distances` [3, h, w] are those to the three sides in inradii, negative inside; `along` [3, h, w]
    runs along each side, from -1 to 1 between its corners; `outline` [h, w] is the largest distance.
    """

    rows: slice
    columns: slice
    distances: Field
    along: Field
    outline: Field


@dataclass(frozen=True)
class Triangle:
    """Shape of an indent. Lengths in pixels, angles in radians."""

    centre: tuple[float, float]
    inradius: float
    rotation: float
    stretch: float
    """Ratio of the axes, from a tilted view."""
    tilt: float
    """Direction of the stretch."""
    bow: tuple[float, float, float]
    """How far the middle of each side is drawn in, in inradii."""

    @classmethod
    def random(cls, draw: np.random.Generator, size: Size) -> "Triangle":
        """A triangle that lies inside an image of `size`."""
        inradius = uniform(draw, (0.075, 0.2)) * unit(size)
        reach = 2.15 * inradius
        places = draw.random(2)
        centre = [
            float(reach + place * (length - 2 * reach)) if length > 2 * reach else length / 2
            for place, length in zip(places, size, strict=True)
        ]
        bow = draw.uniform(-0.05, 0.05, 3) + uniform(draw, (-0.02, 0.12))
        return cls(
            centre=(centre[0], centre[1]),
            inradius=inradius,
            rotation=uniform(draw, (0, 2 * np.pi)),
            stretch=uniform(draw, (0.85, 1.15)),
            tilt=uniform(draw, (0, np.pi)),
            bow=(float(bow[0]), float(bow[1]), float(bow[2])),
        )

    def window(self, size: Size, reach: float = 2.8) -> Window:
        """Distances in the square of `reach` inradii around the centre."""
        top, left = (max(0, int(c - reach * self.inradius)) for c in self.centre)
        bottom, right = (
            min(length, int(c + reach * self.inradius) + 1)
            for c, length in zip(self.centre, size, strict=True)
        )
        y = (np.arange(top, bottom, dtype=np.float32) + np.float32(0.5 - self.centre[0]))[:, None]
        x = (np.arange(left, right, dtype=np.float32) + np.float32(0.5 - self.centre[1]))[None, :]
        shape = (3, bottom - top, right - left)
        distances, along = np.empty(shape, np.float32), np.empty(shape, np.float32)
        linear = self._linear() / np.float32(self.inradius)
        for side in range(3):
            angle = self.rotation + side * 2 * np.pi / 3
            normal = np.array([np.sin(angle), np.cos(angle)], np.float32) @ linear
            tangent = np.array([np.cos(angle), -np.sin(angle)], np.float32) @ linear / np.float32(np.sqrt(3))
            along[side] = tangent[0] * y + tangent[1] * x
            drawn_in = np.float32(self.bow[side]) * (1 - np.square(along[side])).clip(0)
            distances[side] = normal[0] * y + normal[1] * x - 1 + drawn_in
        return Window(slice(top, bottom), slice(left, right), distances, along, distances.max(axis=0))

    def corners(self) -> list[tuple[float, float]]:
        """The three corners as (row, column)."""
        inverse = np.linalg.inv(self._linear().astype(np.float64))
        angles = [self.rotation + np.pi / 3 + side * 2 * np.pi / 3 for side in range(3)]
        offsets = [inverse @ [np.sin(a), np.cos(a)] * 2 * self.inradius for a in angles]
        return [(self.centre[0] + float(dy), self.centre[1] + float(dx)) for dy, dx in offsets]

    def _linear(self) -> Field:
        """The map of area 1 from the image to the upright triangle."""
        cos, sin = np.cos(self.tilt), np.sin(self.tilt)
        turn = np.array([[cos, -sin], [sin, cos]])
        scale = np.diag([np.sqrt(self.stretch), 1 / np.sqrt(self.stretch)])
        linear: Field = (turn.T @ scale @ turn).astype(np.float32)
        return linear


def make_relief(draw: np.random.Generator, window: Window, contrast: float) -> tuple[Field, Field]:
    """Brightness that the indent adds, inside and outside of its outline: two fields [h, w]."""
    distances, outline = window.distances, window.outline
    sun = uniform(draw, (0, 2 * np.pi))
    # Faces turned to the light are brighter than the surface, the others darker: no one threshold fits.
    tones = contrast * (
        0.9 * np.cos(sun + np.arange(3) * 2 * np.pi / 3) + uniform(draw, (-1.3, -0.2))
    ).astype(np.float32)
    second, third = outline == distances[1], outline == distances[2]
    first, other, last = distances
    runner_up = np.maximum(np.minimum(first, other), np.minimum(np.maximum(first, other), last))
    ridge = np.exp((runner_up - outline) * np.float32(uniform(draw, (12, 40))))
    depth = (1 + outline).clip(0, 1)
    inside = (
        np.where(third, tones[2], np.where(second, tones[1], tones[0]))
        + np.float32(uniform(draw, (-0.2, 0.7)) * contrast) * ridge
    )
    inside += np.float32(uniform(draw, (-0.1, 0.8)) * contrast) * (depth - np.float32(0.6))
    steps = uniform(draw, (-0.15, 0.15)) * contrast
    if steps > 0.005:
        inside += np.float32(steps) * np.sin(outline * np.float32(uniform(draw, (25, 60))))
    side = np.where(third, window.along[2], np.where(second, window.along[1], window.along[0]))
    bulge = np.exp(-np.square(side / np.float32(uniform(draw, (0.35, 0.7)))))
    width = np.float32(uniform(draw, (0.06, 0.3)))
    pile_up = np.float32(uniform(draw, (-0.4, 1.6)) * contrast)
    outside = pile_up * bulge * np.exp(-np.square((outline - width) / width))
    edge = np.float32(uniform(draw, (-0.1, 1.0)) * contrast)
    outside += edge * np.exp(-np.abs(outline) * np.float32(uniform(draw, (18, 45))))
    return inside + edge * np.exp(outline.clip(None, 0) * np.float32(30)), outside
