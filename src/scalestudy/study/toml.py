"""Keys and values in TOML, each on one line, so that a `#` can stand before it. Pure."""

from collections.abc import Mapping
from typing import Any

import tomli_w


def toml_line(key: str, value: Any) -> str:
    """`key = value`; a key that is no bare one is quoted."""
    written = tomli_w.dumps({key: 0}).removesuffix(" = 0\n")
    return f"{written} = {toml_value(value)}"


def toml_value(value: Any) -> str:
    """A value on one line: tomli-w gives every item of an array a line of its own.

    Raises:
        TypeError: TOML has no such value (None).
    """
    if isinstance(value, Mapping):
        inside = ", ".join(toml_line(key, each) for key, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").removesuffix("\n")
