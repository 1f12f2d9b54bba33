"""Files of a source that are no samples."""

from dataclasses import dataclass

from scalestudy.util.printable import escape


@dataclass(frozen=True)
class LeftOut:
    """Files skipped for one reason: their number, and the first ones relative to the source."""

    reason: str
    count: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.names) else ""
        return f"{self.count} left out ({self.reason}): {', '.join(map(escape, self.names))}{more}"
