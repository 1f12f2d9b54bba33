"""Where the command line prints, and how it prints errors."""

from typing import TYPE_CHECKING

from scalestudy.util.errors import ScalestudyError

if TYPE_CHECKING:
    from rich.console import Console


def out() -> "Console":
    """Standard output. Long lines stay whole, so that paths can be copied."""
    import sys

    from scalestudy.report.console import PlainConsole

    # In a file or a pipe there is no width to keep to.
    return PlainConsole(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


def err() -> "Console":
    """Standard error."""
    from scalestudy.report.console import PlainConsole

    return PlainConsole(highlight=False, soft_wrap=True, stderr=True)


def print_error(error: ScalestudyError) -> None:
    """The three parts of an error, each on a line of its own."""
    from rich.text import Text

    console = err()
    rows = (("Expected", error.expected), ("Received", error.received), ("", error.action))
    console.print(Text("Error", style="bold red"))
    for label, text in rows:
        console.print(Text.assemble((f"  {label:<9}" if label else "  ", "red"), text))
