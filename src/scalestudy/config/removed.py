"""What keys, options and commands existed once, and what to do instead: removed.toml."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["study", "site", "options", "commands"]


def what_instead(kind: Kind, name: str) -> str | None:
    """Return a sentence on what to do instead of a removed name; None for a name that never existed.

    Args:
        kind: "study" for keys of study files, "site" for those of site profiles, "options" or "commands".
        name: A dotted key, an option behind its command ("run --order"), or a command.
    """
    actions = removed().get(kind, {})
    action = actions.get(name)
    if not action:
        return None
    return f"`{name}` was removed: {action}."


def key_instead(key: str) -> str | None:
    """Return what to do instead of a removed key in a study file, in whatever section it was written.

    Keys of site profiles count, since people write them into study files.
    """
    last = _last_part(key)
    for name in removed()["study"]:
        if _last_part(name) == last:
            return what_instead("study", name)
    instead = what_instead("site", last)
    if not instead:
        return None
    return f"Of the keys of site profiles, {instead}"


def _last_part(key: str) -> str:
    _, _, last = key.rpartition(".")
    return last


@cache
def removed() -> dict[str, dict[str, str]]:
    """Return the action for each removed name, by kind."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    return tables
