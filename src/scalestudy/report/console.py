"""A terminal's console on which no text of others moves the cursor, hides itself or names another window."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from scalestudy.util.escaping import printable


class PlainConsole(Console):
    """Rich's, but only its own styles are control sequences: those in names and messages are spelt out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed, their texts printable."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)
