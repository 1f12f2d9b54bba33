"""A set before it is trained on, as text for a terminal, or as JSON."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scalestudy.features.inspect.shown import ClassCount, Finding, Picture, Shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_NAMES = 5
"""Samples that a finding names here; the page and JSON name more, or all."""
MOST_SIZES = 8
WIDTH = 28
"""Characters of a picture."""


def print_data(shown: Shown, console: "Console") -> None:
    """Print what was understood, counts, sizes, classes, findings, and on a terminal some samples."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(shown.source, style="bold"))
    console.print(Text(f"Seen: {shown.basis}"))
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in [*shown.facts.items(), ("Sizes", sizes_in_words(shown)), ("Samples", counts(shown))]:
        facts.add_row(name, Text(text))
    console.print(facts)
    console.print()
    console.print(_class_table(shown))
    console.print()
    for each in shown.findings:
        style = "bold red" if each.serious else "bold yellow"
        console.print(Text.assemble(("! " if each.serious else "- ", style), (each.title, style)))
        if each.names:
            console.print(Text(f"  {named(each, MOST_NAMES)}", style="dim"))
        console.print(Text(f"  {each.action}"))
    if not shown.findings:
        console.print(Text("Nothing conspicuous was found.", style="green"))
    if console.is_terminal and console.color_system is not None and shown.pictures:
        console.print()
        _print_pictures(shown.pictures, console)


def data_json(shown: Sequence[Shown]) -> str:
    """All but the pictures: one object, or a list where a study has several sets."""
    found = [each.as_json() for each in shown]
    return json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False)


def counts(shown: Shown) -> str:
    """How many samples, by split."""
    parts = ", ".join(f"{count:,} {split}" for split, count in shown.splits.items())
    return f"{shown.count:,}" + (f": {parts}" if parts else "")


def sizes_in_words(shown: Shown) -> str:
    """The sizes with their numbers, the most frequent first."""
    shown_first = shown.sizes[:MOST_SIZES]
    listed = ", ".join(f"{size[0]} x {size[1]} ({count:,})" for size, count, _ in shown_first)
    rest = len(shown.sizes) - len(shown_first)
    if not rest:
        return listed
    heights, widths = zip(*(size for size, _, _ in shown.sizes), strict=True)
    spans = f"{min(heights)} to {max(heights)} high, {min(widths)} to {max(widths)} wide"
    return f"{listed} and {rest} more; {spans}"


def named(finding: Finding, most: int) -> str:
    """The first names of a finding, and how many more there are."""
    more = len(finding.names) - most
    return "; ".join(finding.names[:most]) + (f"; and {more:,} more" if more > 0 else "")


def share(each: ClassCount) -> str:
    """Of a class, in per cent."""
    return f"{each.share:.1%}" if each.share >= 0.001 or not each.share else f"{each.share:.2g}"


def _class_table(shown: Shown) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("Class")
    table.add_column("in masks of" if shown.kind == "masks" else "Samples", justify="right")
    table.add_column("of pixels" if shown.kind == "masks" else "Share", justify="right")
    splits = list(shown.classes[0].splits) if shown.classes else []
    for split in splits:
        table.add_column(split, justify="right")
    table.add_column("")
    largest = max((each.share for each in shown.classes), default=0) or 1
    for each in shown.classes:
        bar = Text("█" * max(1 if each.share else 0, round(20 * each.share / largest)), style="cyan")
        by_split = [f"{each.splits[split]:,}" for split in splits]
        table.add_row(Text(each.name), f"{each.samples:,}", share(each), *by_split, bar)
    return table


def _print_pictures(pictures: Sequence[Picture], console: "Console") -> None:
    from rich.text import Text

    from scalestudy.report.blocks import blocks

    columns = max(1, (console.width + 2) // (WIDTH + 2))
    width = min(WIDTH, console.width)
    for start in range(0, len(pictures), columns):
        row = pictures[start : start + columns]
        drawn = [each.image if each.laid is None else each.laid for each in row]
        console.print(blocks(drawn, width), end="", soft_wrap=True)
        names = [_end(each.name, width) for each in row]
        about = [_start(each.about, width) for each in row]
        console.print(Text("  ".join(names)), soft_wrap=True)
        console.print(Text("  ".join(about), style="dim"), soft_wrap=True)


def _start(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def _end(text: str, width: int) -> str:
    """The end of a long name, which tells it from others, in so many columns."""
    return text.ljust(width) if len(text) <= width else "…" + text[-(width - 1) :]
