"""What else lies on a surface: scratches, pores, dust, cracks and the marks of earlier scans."""

import numpy as np
from PIL import Image, ImageDraw

from scalestudy.data.sources.micrographs.fields import Field, Size, uniform, unit
from scalestudy.data.sources.micrographs.instruments import Instrument
from scalestudy.data.sources.micrographs.triangle import Triangle

_NEUTRAL = 128
_DEPTH = 0.6
"""Brightness that full black or white of the drawing stands for."""


def make_defects(draw: np.random.Generator, kind: Instrument, size: Size, triangle: Triangle) -> Field:
    """Deviations of brightness [H, W] by scratches, pores, dust, dark stains, and cracks of the indent."""
    picture = Image.new("L", (size[1], size[0]), _NEUTRAL)
    pen = ImageDraw.Draw(picture)
    _scanned_before(draw, pen, size)
    for _ in range(int(draw.integers(0, 4))):
        _spot(draw, pen, size, (0.03, 0.085), (-0.3, -0.06))
    for _ in range(int(draw.integers(0, kind.scratches + 1))):
        _scratch(draw, pen, size)
    for _ in range(int(draw.integers(kind.pores // 4, kind.pores + 1))):
        _spot(draw, pen, size, (0.002, 0.014), (-0.5, -0.1))
    for _ in range(int(draw.integers(0, 5))):
        _spot(draw, pen, size, (0.003, 0.012), (0.1, 0.45))
    _cracks(draw, pen, size, triangle)
    defects: Field = (np.asarray(picture, np.float32) - _NEUTRAL) * np.float32(_DEPTH / 127)
    return defects


def _ink(amplitude: float) -> int:
    return round(_NEUTRAL + 127 * max(-1.0, min(1.0, amplitude / _DEPTH)))


def _spot(
    draw: np.random.Generator,
    pen: ImageDraw.ImageDraw,
    size: Size,
    radii: tuple[float, float],
    tones: tuple[float, float],
) -> None:
    """An irregular blob of a radius between `radii`, with the far rim lit."""
    radius = np.exp(uniform(draw, (np.log(radii[0]), np.log(radii[1])))) * unit(size)
    tone = uniform(draw, tones)
    centre = draw.random(2) * size
    angles = np.arange(14) * (2 * np.pi / 14)
    lobes = 1 + 0.18 * draw.standard_normal(2) @ np.stack([np.cos(2 * angles + 1), np.sin(3 * angles)])
    lobes = lobes * (1 + 0.1 * draw.standard_normal(14))
    squeeze, turn = uniform(draw, (0.55, 1.0)), uniform(draw, (0, np.pi))
    a, b = radius * lobes * np.cos(angles), squeeze * radius * lobes * np.sin(angles)
    xs = centre[1] + a * np.cos(turn) - b * np.sin(turn)
    ys = centre[0] + a * np.sin(turn) + b * np.cos(turn)
    rim = draw.random() < 0.4
    if rim:
        shift = max(0.6, 0.12 * radius)
        pen.polygon(list(zip(xs + shift, ys + shift, strict=True)), fill=_ink(-0.6 * tone))
    pen.polygon(list(zip(xs, ys, strict=True)), fill=_ink(tone))


def _scratch(draw: np.random.Generator, pen: ImageDraw.ImageDraw, size: Size) -> None:
    """A slightly bent line, dark with a bright lip or the other way round."""
    scale = unit(size)
    start = draw.random(2) * size
    angle, length = uniform(draw, (0, 2 * np.pi)), uniform(draw, (0.1, 1.4)) * scale
    bend = uniform(draw, (-0.15, 0.15))
    steps = np.linspace(0, 1, 9)
    turns = angle + bend * steps
    xs, ys = start[1] + length * steps * np.cos(turns), start[0] + length * steps * np.sin(turns)
    tone = uniform(draw, (0.05, 0.28)) * (1 if draw.random() < 0.4 else -1)
    exact = uniform(draw, (0.0008, 0.005)) * scale
    width, tone = max(1, round(exact)), tone * min(1.0, max(0.4, exact))
    pen.line(list(zip(xs + width, ys + width, strict=True)), fill=_ink(-0.5 * tone), width=width)
    pen.line(list(zip(xs, ys, strict=True)), fill=_ink(tone), width=width)


def _cracks(draw: np.random.Generator, pen: ImageDraw.ImageDraw, size: Size, triangle: Triangle) -> None:
    """Cracks that run on from the corners of an indent in a brittle material."""
    brittle = draw.random() < 0.2
    lengths, wobble = draw.uniform(0.2, 0.9, 3), draw.standard_normal((3, 6)) * 0.03
    tone = uniform(draw, (-0.35, -0.12))
    if not brittle:
        return
    width = max(1, round(0.0018 * unit(size)))
    for corner, length, bends in zip(triangle.corners(), lengths, wobble, strict=True):
        out = np.array(corner) - np.array(triangle.centre)
        steps = np.linspace(0, 1, 6) * length
        ys = corner[0] + steps * (out[0] - bends * out[1])
        xs = corner[1] + steps * (out[1] + bends * out[0])
        pen.line(list(zip(xs, ys, strict=True)), fill=_ink(tone), width=width)


def _scanned_before(draw: np.random.Generator, pen: ImageDraw.ImageDraw, size: Size) -> None:
    """The rectangle that an earlier, closer scan has darkened with contamination."""
    there = draw.random() < 0.22
    corner, extent = draw.random(2) * 0.6, draw.uniform(0.25, 0.6, 2)
    tone = uniform(draw, (-0.09, -0.03))
    if there:
        top, left = corner * size
        bottom, right = (corner + extent) * size
        pen.rectangle((left, top, right, bottom), fill=_ink(tone))
