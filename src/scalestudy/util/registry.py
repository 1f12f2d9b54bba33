"""Registries of extensions by name: strategies, engines, tasks, data sources, launchers, report formats.

Built-in items and those of other packages are found in the same way. Another package declares an entry point
in its `pyproject.toml`, such as `[project.entry-points."scalestudy.tasks"]` with
`mine = "my_package.tasks:mine"`. Items are imported at their first use.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from scalestudy.util.errors import UserError

Item = TypeVar("Item")
BUILT_IN: dict[str, Mapping[str, str]] = {}
"""Built-in items by group, each as "module:attribute" or as a module; the root of this package fills it."""


class Registry(Generic[Item]):
    """Items of one kind, by name.

    Args:
        group: Name of the entry point group, such as "scalestudy.tasks".
        built_in: A function that returns the built-in items; by default they are those of `BUILT_IN`.
    """

    def __init__(
        self,
        group: str,
        built_in: Callable[[], Mapping[str, Item]] | None = None,
    ) -> None:
        self.group, self._given = group, built_in
        self._loaded: dict[str, Item] = {}

    @cached_property
    def _built_in(self) -> Mapping[str, Any]:
        if self._given is not None:
            return self._given()
        return BUILT_IN.get(self.group, {})

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        entries: dict[str, EntryPoint] = {}
        found = entry_points(group=self.group)
        for entry in sorted(found, key=lambda entry: entry.name):
            # Equal entries are one: Python may find a package twice on its path.
            known = entries.get(entry.name, entry)
            if entry.name in self._built_in or known != entry:
                raise UserError(
                    f"one {entry.name!r} in {self.group}",
                    f"another one from {_package(entry)}",
                    "Uninstall that package, or ask its authors for another name.",
                )
            entries[entry.name] = entry
        return entries

    def names(self) -> list[str]:
        """Return all names: first the built-in ones, then those of other packages in alphabetical order."""
        return [*self._built_in, *self._added]

    def built_in(self) -> list[str]:
        """Return the names of the built-in items."""
        return list(self._built_in)

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._added

    def get(self, name: str) -> Item:
        """Return the item with this name, which is imported at its first use.

        Raises:
            KeyError: If there is none.
            UserError: If it comes from another package and cannot be imported.
        """
        # At the first use: an import may load a framework.
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def items(self) -> list[Item]:
        """Return all items, in the order of `names`."""
        return [self.get(name) for name in self.names()]

    def module(self, name: str) -> str:
        """Return the name of the module that holds the item with this name, without importing it.

        Raises:
            KeyError: If there is no such item.
        """
        if name in self._built_in:
            where: str = self._built_in[name]
        else:
            where = self._added[name].value
        return where.partition(":")[0].strip()

    def _load(self, name: str) -> Item:
        if name in self._built_in:
            built_in: Item = self._built_in[name]
            if isinstance(built_in, str):
                built_in = load(built_in)
            return built_in
        entry = self._added[name]
        try:
            item: Item = entry.load()
        # An import runs the code of that package, which may raise anything.
        except Exception as error:
            raise UserError(
                f"{name!r} of {_package(entry)}, by its entry point {entry.value}",
                f"{type(error).__name__}: {error}",
                "Repair or uninstall that package.",
            ) from error
        return item


def load(where: str) -> Any:
    """Import and return the object at "module:attribute", or the module at "module"."""
    module, _, attribute = where.partition(":")
    holder = importlib.import_module(module)
    if not attribute:
        return holder
    return getattr(holder, attribute)


def _package(entry: EntryPoint) -> str:
    if entry.dist is None:
        return "a package"
    return f"the package {entry.dist.name} {entry.dist.version}"
