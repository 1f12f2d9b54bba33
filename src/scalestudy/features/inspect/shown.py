"""What is shown of a set before it is trained on."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Size


@dataclass(frozen=True)
class Finding:
    """Something that may be a mistake.

    Attributes:
        title: What was found, with how many.
        action: What to do about it.
        names: The samples, or pairs of them.
        serious: Whether it makes results wrong, rather than worse.
    """

    title: str
    action: str
    names: tuple[str, ...] = ()
    serious: bool = False


@dataclass(frozen=True)
class ClassCount:
    """A class in the samples that were looked at.

    Attributes:
        name: Its name.
        samples: Samples of it, or in whose masks it is.
        share: Of the samples, or of the pixels of all masks that count.
        splits: Samples by split, for those that there are.
    """

    name: str
    samples: int
    share: float
    splits: dict[str, int]


@dataclass(frozen=True)
class Picture:
    """A sample to look at.

    Attributes:
        name: Its name.
        about: Its size, and its class or the classes in its mask, in words.
        image: RGB, uint8 [h, w, 3].
        laid: The same with the mask laid over it; None without a mask.
    """

    name: str
    about: str
    image: npt.NDArray[np.uint8]
    laid: npt.NDArray[np.uint8] | None


@dataclass(frozen=True)
class Shown:
    """A set.

    Attributes:
        source: As it was named.
        kind: "masks" or "classes".
        basis: What was looked at, in a sentence.
        facts: What was understood and how, by heading.
        count: Samples in all.
        seen: Samples that were looked at.
        splits: Samples by split; empty where they are not split yet.
        sizes: Height and width of the images, how many, and the first of them; the most frequent first.
        classes: In their order.
        findings: The serious ones first.
        pictures: Some samples.
    """

    source: str
    kind: Kind
    basis: str
    facts: dict[str, str]
    count: int
    seen: int
    splits: dict[str, int]
    sizes: list[tuple[Size, int, str]]
    classes: list[ClassCount]
    findings: list[Finding]
    pictures: list[Picture]

    def as_json(self) -> dict[str, Any]:
        """Everything but the pictures, in JSON's types."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "pictures"}
        return found | {
            "sizes": [
                {"height": size[0], "width": size[1], "images": images, "first": first}
                for size, images, first in self.sizes
            ],
            "classes": [asdict(each) for each in self.classes],
            "findings": [asdict(each) for each in self.findings],
        }
