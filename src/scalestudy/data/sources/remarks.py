"""What was done to images that a person should know: told as a set is prepared, and kept with it."""

from dataclasses import dataclass, field
from typing import Any

from scalestudy.data.sources.files import several


@dataclass
class Remarks:
    """Collects names by what is to be said of them."""

    _names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, what: str, name: str) -> None:
        """Say this of one more image; twice of the same is once."""
        names = self._names.setdefault(what, [])
        if name not in names[-1:]:
            names.append(name)

    def sentences(self) -> list[str]:
        """One for each remark, with the number of images and the first of them."""
        return [
            f"{len(names)} {'image' if len(names) == 1 else 'images'} {what}: {several(sorted(names))}"
            for what, names in self._names.items()
        ]


def of_source(source: Any) -> list[str]:
    """What a source remarks, once its rows are read: nothing where it has no `remarks`."""
    return list(source.remarks()) if hasattr(source, "remarks") else []
