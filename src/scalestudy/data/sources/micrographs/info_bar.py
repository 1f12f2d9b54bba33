"""The info bar at the bottom of a micrograph: text as instruments print it, and a scale bar."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from scalestudy.data.sources.micrographs.fields import Field, Size
from scalestudy.data.sources.micrographs.instruments import Instrument

_LINE = 11
"""Pixels of a line of Pillow's bitmap font, which looks the same in every build."""


def draw_bar(draw: np.random.Generator, kind: Instrument, image: Field, height: int) -> None:
    """Draw the bar over the lowest `height` rows of an image [H, W] of brightness 0..1, in place.

    An instrument without a bar gets its scale bar drawn straight into the image.
    """
    scale_text, texts = _texts(draw)
    length = float(draw.uniform(0.1, 0.2))
    if height < 3:
        return
    ground, ink = kind.bar_tones
    lines = 2 if kind.bar_text == "two-line" else 1
    rows = lines * (_LINE + 3) + 6
    ink_share = _strip(kind, scale_text, texts, length, (rows, round(rows * image.shape[1] / height)))
    ink_share = ink_share.resize((image.shape[1], height), Image.Resampling.BILINEAR)
    share = np.asarray(ink_share, np.float32) / np.float32(255)
    bar = image[-height:]
    under = bar if kind.bar[1] == 0 else np.float32(ground)
    bar[:] = under + (np.float32(ink) - under) * share


def _strip(kind: Instrument, scale: str, texts: list[str], length: float, size: Size) -> Image.Image:
    """The bar's text and lines as 255 on 0, at the font's own size [rows, columns]."""
    font = ImageFont.load_default_imagefont()
    rows, columns = size
    strip = Image.new("L", (columns, rows), 0)
    pen = ImageDraw.Draw(strip)
    span = round(length * columns)
    right = columns - 8
    if kind.bar[1] > 0:
        _print(pen, font, kind.bar_text, texts, (rows, right - span - 24))
        pen.rectangle((right - span - 24, 0, columns, rows), fill=0)
    pen.rectangle((right - span, rows - 6, right, rows - 4), fill=255)
    for x in (right - span, right):
        pen.line((x, rows - 9, x, rows - 2), fill=255)
    width = int(pen.textlength(scale, font))
    pen.text((right - (span + width) // 2, rows - 9 - _LINE), scale, fill=255, font=font)
    return strip


def _print(
    pen: ImageDraw.ImageDraw, font: ImageFont.ImageFont, how: str, texts: list[str], size: Size
) -> None:
    """Print as many of the texts as fit into the left part [rows, columns] of a bar."""
    rows, columns = size
    if how == "two-line":
        lines, places = [texts[:3], texts[3:]], [4, 7 + _LINE]
    else:
        lines, places = [texts], [5]
    for line, y in zip(lines, places, strict=True):
        x = 8
        for text in line:
            width = int(pen.textlength(text, font))
            if x + width > columns:
                break
            pen.text((x, y), text, fill=255, font=font)
            if how == "spread":
                pen.line((x + width + 8, 2, x + width + 8, rows - 3), fill=110)
            x += width + 16


def _texts(draw: np.random.Generator) -> tuple[str, list[str]]:
    volts = draw.choice(["2.00 kV", "5.00 kV", "10.0 kV", "15.0 kV", "20.0 kV"])
    detector = draw.choice(["ETD", "TLD", "BSE", "SE2", "InLens", "LFD"])
    scale = draw.choice(["2 um", "5 um", "10 um", "20 um", "50 um"])
    texts = [
        str(volts),
        f"x{int(draw.integers(8, 160)) * 125}",
        f"WD {float(draw.uniform(3, 16)):.1f} mm",
        str(detector),
        f"HFW {float(draw.uniform(8, 200)):.1f} um",
        f"No {int(draw.integers(1, 2000)):04d}",
    ]
    return str(scale), texts
