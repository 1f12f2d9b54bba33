"""What `verify` found of one file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scalestudy.study.reading import Word

Kind = Literal["study", "record", "epochs", "model", "checkpoint", "data", "split"]
OnRead = Callable[[str, int], None]
"""Called with a file under way and bytes of it that were read."""


@dataclass(frozen=True)
class Verified:
    """A file that was looked at.

    Attributes:
        path: Relative to the study's folder where it lies in it, absolute otherwise.
        kind: What it is.
        word: What it was found to be.
        why: What is wrong; "" for what is sound.
        needed: Whether the study's results lose something with it. Data can be prepared anew.
    """

    path: str
    kind: Kind
    word: Word
    why: str = ""
    needed: bool = True

    @property
    def sound(self) -> bool:
        """Whether it can be gone by, with or without a checksum, or is not missed."""
        return self.word in ("sound", "without checksum") or (self.word == "missing" and not self.needed)
