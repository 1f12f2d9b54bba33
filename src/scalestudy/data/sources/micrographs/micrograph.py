"""One made micrograph and its mask."""

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from scalestudy.data.sources.micrographs.defects import make_defects
from scalestudy.data.sources.micrographs.fields import Field, Size, uniform, unit
from scalestudy.data.sources.micrographs.info_bar import draw_bar
from scalestudy.data.sources.micrographs.instruments import INSTRUMENTS, Instrument
from scalestudy.data.sources.micrographs.surface import make_light, make_texture
from scalestudy.data.sources.micrographs.triangle import Triangle, make_relief

Pixels = npt.NDArray[np.uint8]


def make_micrograph(seed: int, index: int, size: Size) -> tuple[Pixels, Pixels]:
    """Micrograph number `index` under `seed`: an image [H, W] and its mask [H, W] of 0 and 1.

    It depends on nothing else, so any number of them starts with the same ones; other sizes show the
    same scene.
    """
    draw = np.random.default_rng([seed, index, 0])
    kind = INSTRUMENTS[int(draw.integers(len(INSTRUMENTS)))]
    bar = round(max(uniform(draw, kind.bar), 0.05 if kind.bar[1] == 0 else 0.0) * size[0])
    triangle = Triangle.random(draw, (size[0] - bar, size[1]))
    image = make_light(draw, kind, size)
    texture = make_texture(draw, kind, size) + make_defects(draw, kind, size, triangle)
    mask = _indent(draw, kind, triangle, image, texture)
    _charge(draw, kind, triangle, image)
    image = _record(draw, np.random.default_rng([seed, index, 1]), kind, image)
    draw_bar(draw, kind, image, bar)
    mask[size[0] - bar :] = 0
    return (image.clip(0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8), mask


def _indent(
    draw: np.random.Generator, kind: Instrument, triangle: Triangle, image: Field, texture: Field
) -> Pixels:
    """Press the indent into `image` (light alone), adding `texture` in place; returns the mask."""
    size = (image.shape[0], image.shape[1])
    window = triangle.window(size)
    inside, outside = make_relief(draw, window, uniform(draw, kind.contrast))
    outline = window.outline
    within = (np.float32(0.5) - outline * np.float32(triangle.inradius)).clip(0, 1)
    flattened = np.float32(1 - uniform(draw, (0.2, 0.7))) * within
    part = (window.rows, window.columns)
    texture[part] *= 1 - flattened
    image += texture
    image[part] += outside + (inside - outside) * within
    mask = np.zeros(size, np.uint8)
    mask[part] = outline < 0
    return mask


def _charge(draw: np.random.Generator, kind: Instrument, triangle: Triangle, image: Field) -> None:
    """Streaks along scan lines, where an edge of the indent has charged."""
    there = draw.random() < kind.charging
    strength, share = uniform(draw, (0.02, 0.12)), uniform(draw, (0.1, 0.5))
    reach, side = uniform(draw, (0.1, 0.6)), 1 if draw.random() < 0.8 else -1
    lines = draw.exponential(strength, 64) * (draw.random(64) < share)
    if not there:
        return
    height = 4 * triangle.inradius
    rows = np.arange(image.shape[0]) - (triangle.centre[0] - height / 2)
    chosen = (rows >= 0) & (rows < height)
    amplitudes = np.where(chosen, lines[(rows * 64 / height).astype(np.int64).clip(0, 63)], 0)
    away = side * (np.arange(image.shape[1]) - triangle.centre[1]) / unit(image.shape[:2])
    profile = np.where(away > 0, np.exp(-away / reach), np.exp(6 * away))
    image += amplitudes.astype(np.float32)[:, None] * profile.astype(np.float32)[None, :]


def _record(draw: np.random.Generator, noise: np.random.Generator, kind: Instrument, image: Field) -> Field:
    """Blur of the optics, shot noise of the detector, offsets of scan lines, and gain."""
    radius = uniform(draw, kind.blur) * unit(image.shape[:2])
    # A smaller image stands for one scaled down, whose pixels average some of the noise away.
    quiet = min(1.0, (unit(image.shape[:2]) / 768) ** 0.4)
    shot, line = quiet * uniform(draw, kind.shot), quiet * uniform(draw, kind.line)
    gain, offset = uniform(draw, (0.9, 1.1)), uniform(draw, (-0.03, 0.03))
    image = image.clip(0.02, 1)
    if radius > 0.25:
        picture = Image.fromarray((image * np.float32(255)).astype(np.uint8))
        image = np.asarray(picture.filter(ImageFilter.GaussianBlur(radius)), np.float32) * np.float32(1 / 255)
    grain: Field = noise.standard_normal(image.shape, dtype=np.float32)
    if kind.streaky:
        grain[:, 1:] += np.float32(0.6) * grain[:, :-1]
        shot /= 1.17
    grain *= np.sqrt(image)
    grain *= np.float32(shot * gain)
    grain += np.float32(gain) * image + np.float32(offset)
    if line > 0:
        grain += noise.standard_normal((len(image), 1), dtype=np.float32) * np.float32(line)
    return grain
