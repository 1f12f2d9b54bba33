"""The instruments that the made micrographs pretend to come from."""

from dataclasses import dataclass
from typing import Literal

Range = tuple[float, float]


@dataclass(frozen=True)
class Instrument:
    """How one instrument renders a surface. Brightness runs from 0 to 1, lengths in image heights."""

    name: str
    brightness: Range
    """Of the polished surface."""
    contrast: Range
    """Amplitude of the faces of an indent."""
    blur: Range
    shot: Range
    """Standard deviation of the noise at brightness 1; grows with the root of brightness."""
    line: Range
    """Standard deviation of the offsets of scan lines."""
    streaky: bool
    """Noise is correlated along scan lines (a slow detector)."""
    light: Range
    """Amplitude of uneven illumination."""
    vignette: float
    grains: Range
    """Amplitude of the grey levels of grains."""
    boundaries: Range
    """Darkening of grain boundaries."""
    marks: Range
    """Amplitude of polishing marks."""
    mottle: Range
    """Amplitude of fine surface texture."""
    scratches: int
    """Most scratches on an image."""
    pores: int
    """Most pores, dust and other dark spots on an image."""
    charging: float
    """Chance of bright streaks beside the indent."""
    bar: Range
    """Height of the info bar; none when 0."""
    bar_tones: tuple[float, float]
    """Brightness of the bar and of its text."""
    bar_text: Literal["spread", "left", "two-line"]


INSTRUMENTS = (
    Instrument(
        name="field-emission",
        brightness=(0.38, 0.58),
        contrast=(0.123, 0.387),
        blur=(0.0008, 0.002),
        shot=(0.03, 0.07),
        line=(0.0, 0.006),
        streaky=False,
        light=(0.024, 0.084),
        vignette=0.05,
        grains=(0.0, 0.035),
        boundaries=(0.0, 0.032),
        marks=(0.0, 0.018),
        mottle=(0.014, 0.035),
        scratches=4,
        pores=26,
        charging=0.25,
        bar=(0.06, 0.075),
        bar_tones=(0.0, 1.0),
        bar_text="spread",
    ),
    Instrument(
        name="tungsten",
        brightness=(0.22, 0.4),
        contrast=(0.141, 0.352),
        blur=(0.002, 0.0045),
        shot=(0.12, 0.2),
        line=(0.008, 0.025),
        streaky=True,
        light=(0.036, 0.096),
        vignette=0.1,
        grains=(0.0, 0.021),
        boundaries=(0.0, 0.024),
        marks=(0.0, 0.024),
        mottle=(0.007, 0.021),
        scratches=6,
        pores=18,
        charging=0.5,
        bar=(0.075, 0.09),
        bar_tones=(0.06, 0.85),
        bar_text="left",
    ),
    Instrument(
        name="backscatter",
        brightness=(0.4, 0.6),
        contrast=(0.141, 0.352),
        blur=(0.001, 0.0025),
        shot=(0.06, 0.12),
        line=(0.0, 0.008),
        streaky=False,
        light=(0.012, 0.048),
        vignette=0.03,
        grains=(0.056, 0.14),
        boundaries=(0.016, 0.064),
        marks=(0.0, 0.012),
        mottle=(0.007, 0.021),
        scratches=3,
        pores=30,
        charging=0.05,
        bar=(0.05, 0.065),
        bar_tones=(0.78, 0.05),
        bar_text="spread",
    ),
    Instrument(
        name="optical",
        brightness=(0.58, 0.78),
        contrast=(0.176, 0.458),
        blur=(0.0025, 0.005),
        shot=(0.015, 0.04),
        line=(0.0, 0.0),
        streaky=False,
        light=(0.036, 0.108),
        vignette=0.25,
        grains=(0.0, 0.07),
        boundaries=(0.04, 0.144),
        marks=(0.006, 0.024),
        mottle=(0.007, 0.021),
        scratches=14,
        pores=34,
        charging=0.0,
        bar=(0.0, 0.0),
        bar_tones=(0.95, 0.1),
        bar_text="left",
    ),
    Instrument(
        name="in-situ",
        brightness=(0.3, 0.46),
        contrast=(0.123, 0.299),
        blur=(0.0015, 0.003),
        shot=(0.07, 0.13),
        line=(0.004, 0.015),
        streaky=True,
        light=(0.048, 0.12),
        vignette=0.05,
        grains=(0.0, 0.028),
        boundaries=(0.0, 0.024),
        marks=(0.006, 0.03),
        mottle=(0.014, 0.042),
        scratches=5,
        pores=16,
        charging=0.7,
        bar=(0.1, 0.125),
        bar_tones=(0.22, 0.9),
        bar_text="two-line",
    ),
    Instrument(
        name="tabletop",
        brightness=(0.48, 0.68),
        contrast=(0.123, 0.352),
        blur=(0.0015, 0.0035),
        shot=(0.05, 0.1),
        line=(0.002, 0.01),
        streaky=True,
        light=(0.024, 0.084),
        vignette=0.08,
        grains=(0.0, 0.028),
        boundaries=(0.0, 0.032),
        marks=(0.024, 0.066),
        mottle=(0.007, 0.028),
        scratches=12,
        pores=22,
        charging=0.2,
        bar=(0.06, 0.08),
        bar_tones=(1.0, 0.0),
        bar_text="two-line",
    ),
)
