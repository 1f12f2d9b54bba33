"""A terminal console on which printed text cannot move the cursor, hide itself or rename the window."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from scalestudy.util.escaping import printable


class PlainConsole(Console):
    """Rich's console, with control sequences in names and messages escaped; only its own styles remain."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments to print, with their texts made printable."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)
