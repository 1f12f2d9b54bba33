"""Where a study's settings were written, so that any later refusal can name the line."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Place:
    """File and lines of a study's keys; empty for a study that was not read from a file.

    `lines` goes by dotted name, an item of a list with its index: "train.epochs", "sweep.workers[2]".
    All places compare equal: where a setting was written makes no other study.
    """

    file: str = field(default="", compare=False)
    lines: dict[str, int] = field(default_factory=dict, compare=False)

    def of(self, *names: str) -> str:
        """The line of the first name that has one, as " (study.toml, line 4)"; "" without a file."""
        if not self.file:
            return ""
        line = next((self.lines[name] for name in names if name in self.lines), None)
        return f" ({self.file})" if line is None else f" ({self.file}, line {line})"
