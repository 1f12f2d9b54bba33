"""The formats of commands that answer with a table."""

from scalestudy.util.errors import UserError


def check_format(format: str) -> None:
    """Refuse a format that is neither table nor json.

    Raises:
        UserError: It is another.
    """
    if format not in ("table", "json"):
        raise UserError("a format out of table, json", repr(format), "Choose one of these with --format.")
