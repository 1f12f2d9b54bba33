"""The table of layouts. To add one, write its file, and name it here."""

from scalestudy.data.layouts import (
    classes,
    coco,
    labels,
    objects,
    pairs,
    patterns,
    sheet,
    split_pairs,
    suffixes,
)
from scalestudy.data.layouts.base import Layout

LAYOUTS: tuple[Layout, ...] = (
    pairs.LAYOUT,
    split_pairs.LAYOUT,
    objects.LAYOUT,
    suffixes.LAYOUT,
    classes.LAYOUT,
    coco.LAYOUT,
    sheet.LAYOUT,
)
"""Those that a folder is held against."""
FALLBACK = classes.LAYOUT
"""What a folder with folders of images is, if it is nothing else."""
ASKED: dict[str, Layout] = {
    "images": patterns.LAYOUT,
    "masks": patterns.LAYOUT,
    "label_pattern": labels.LAYOUT,
}
"""Those that a key of [data] asks for."""
NAMES: dict[str, Layout] = {each.name: each for each in (*LAYOUTS, *ASKED.values())}
