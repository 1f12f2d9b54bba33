"""What can be added: strategies, engines, tasks, sources of data, launchers, forms of the report; by name.

Ours and those of other packages are found in the same way. Another package declares an entry point in its
`pyproject.toml`, such as `[project.entry-points."scalestudy.tasks"]` with `mine = "my_package.tasks:mine"`.
Nothing is imported before it is asked for.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from scalestudy.util.errors import UserError

Item = TypeVar("Item")


class Registry(Generic[Item]):
    """Things of one kind by their names.

    Args:
        group: Name of the group of entry points, as "scalestudy.tasks".
        built_in: Ours, in the order in which they are shown: each as "module:attribute", or as a module; or a
            function that gives the things themselves.
    """

    def __init__(self, group: str, built_in: Mapping[str, str] | Callable[[], Mapping[str, Item]]) -> None:
        self.group, self._given = group, built_in
        self._loaded: dict[str, Item] = {}

    @cached_property
    def _built_in(self) -> Mapping[str, Any]:
        return self._given() if callable(self._given) else self._given

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        entries: dict[str, EntryPoint] = {}
        for entry in sorted(entry_points(group=self.group), key=lambda entry: entry.name):
            if entry.name in self._built_in or (entry.name in entries and entries[entry.name] != entry):
                raise UserError(
                    f"one {entry.name!r} in {self.group}",
                    f"another one from {_package(entry)}",
                    "Uninstall that package, or ask its authors for another name.",
                )
            entries[entry.name] = entry
        return entries

    def names(self) -> list[str]:
        """All names: ours first, then others' by the alphabet."""
        return [*self._built_in, *self._added]

    def built_in(self) -> list[str]:
        """Our own names."""
        return list(self._built_in)

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._added

    def get(self, name: str) -> Item:
        """The thing of this name, imported at its first use.

        Raises:
            KeyError: There is none.
            UserError: It comes from another package, and cannot be imported.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def module(self, name: str) -> str:
        """The module that holds it; it is not imported.

        Raises:
            KeyError: There is no thing of this name.
        """
        where = self._built_in[name] if name in self._built_in else self._added[name].value
        return where.partition(":")[0].strip()

    def _load(self, name: str) -> Item:
        if name in self._built_in:
            given = self._built_in[name]
            item: Item = loaded(given) if isinstance(given, str) else given
            return item
        entry = self._added[name]
        try:
            brought: Item = entry.load()
        except Exception as error:
            raise UserError(
                f"{name!r} of {_package(entry)}, by its entry point {entry.value}",
                f"{type(error).__name__}: {error}",
                "Repair or uninstall that package.",
            ) from error
        return brought


def loaded(where: str) -> Any:
    """What "module:attribute" names, or the module "module", imported."""
    module, _, attribute = where.partition(":")
    holder = importlib.import_module(module)
    return getattr(holder, attribute) if attribute else holder


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name} {entry.dist.version}" if entry.dist else "a package"
