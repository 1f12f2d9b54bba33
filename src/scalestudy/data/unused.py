"""Keys of [data] that a source has no use for: refused, since what they ask for would not be done."""

from collections.abc import Iterable

from scalestudy.errors import UserError
from scalestudy.study.settings import DataSettings

COLUMNS = ("file_column", "label_column", "mask_column", "split_column", "group_column")
"""Those of tables."""
OF_FILES = ("images", "masks", "label_pattern", "group_pattern", "colours", "value_range", *COLUMNS)
"""Those of images in files."""


def refuse_unused(data: DataSettings, keys: Iterable[str], what: str) -> None:
    """Refuse those of `keys` that are given; `what` is the source in words, for the message.

    Raises:
        UserError: one is.
    """
    given = [key for key in keys if getattr(data, key) is not None]
    if given:
        raise UserError(
            f"keys under [data] that are of use for {what}",
            " and ".join(f"`{key}`" for key in given),
            "Remove the key, or name a source or a `layout` that it is meant for.",
        )
