"""What kinds of data there are, and which sources are made on the spot. Imports nothing heavy."""

from typing import Literal

Kind = Literal["masks", "classes"]
Made = Literal["indents", "digits"]


def made_source(source: str) -> Made | None:
    """Name of the made source that `source` asks for, or None when it is a path.

    `"indents"`, `"indents:COUNT"` and `"digits"` are made; a folder of that name is `"./indents"`.
    """
    name = source.partition(":")[0]
    if name == "indents":
        return "indents"
    return "digits" if source == "digits" else None
