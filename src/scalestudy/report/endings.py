"""The form of a file that is written, by its ending."""

from collections.abc import Collection
from pathlib import Path

from scalestudy.util.errors import UserError

ENDINGS = {
    ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex", ".html": "html", ".htm": "html",
    ".parquet": "parquet",
}  # fmt: skip


def form_by_ending(form: str | None, out: Path | None, forms: Collection[str], default: str) -> str:
    """The form that is asked for: by its name, else by the file's ending.

    Args:
        form: Its name; None if none was given.
        out: The file; None where none is written.
        forms: Those that there are.
        default: Where neither says it.

    Raises:
        UserError: There is none of this name, or the file ends as a PDF, which none of them is.
    """
    if form is None and out is not None and out.suffix.lower() == ".pdf":
        raise UserError(
            "a file of a form that is written",
            f"--out {out}",
            f"Print a page: --out {out.with_suffix('.html')}, then `chromium --headless"
            f" --print-to-pdf={out} {out.with_suffix('.html')}`; or name a format.",
        )
    if form is None:
        found = ENDINGS.get(out.suffix.lower()) if out else None
        return found if found and found in forms else default
    if form not in forms:
        raise UserError(
            f"a format out of {', '.join(forms)}", repr(form), "Choose one of these with --format."
        )
    return form
