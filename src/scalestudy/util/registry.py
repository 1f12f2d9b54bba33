"""Registries of items by name: strategies, engines, tasks, data sources, launchers, report formats.

Items are imported at their first use.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
BUILT_IN: dict[str, Mapping[str, str]] = {}
"""Items by group, each as "module:attribute" or as a module; the root of this package fills it."""


class Registry(Generic[Item]):
    """Items of one kind, by name.

    Args:
        group: Name of the kind in `BUILT_IN`.
        items: A function that returns the items; by default they are those of `BUILT_IN`.
    """

    def __init__(self, group: str, items: Callable[[], Mapping[str, Item]] | None = None) -> None:
        self.group, self._given = group, items
        self._loaded: dict[str, Item] = {}

    @cached_property
    def _table(self) -> Mapping[str, Any]:
        return BUILT_IN[self.group] if self._given is None else self._given()

    def names(self) -> list[str]:
        """Return all names, in the order in which they are shown."""
        return list(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def get(self, name: str) -> Item:
        """Return the item with this name, which is imported at its first use; raises KeyError."""
        if name not in self._loaded:
            given = self._table[name]
            self._loaded[name] = load(given) if isinstance(given, str) else given
        return self._loaded[name]

    def items(self) -> list[Item]:
        """Return all items, in the order of `names`."""
        return [self.get(name) for name in self.names()]

    def module(self, name: str) -> str:
        """Return the module that holds the item with this name, without importing it; raises KeyError."""
        module: str = self._table[name]
        return module.partition(":")[0]


def load(where: str) -> Any:
    """Import and return the object at "module:attribute", or the module at "module"."""
    module, _, attribute = where.partition(":")
    holder = importlib.import_module(module)
    return getattr(holder, attribute) if attribute else holder
