"""The manual's pages, which are part of the installed package: `scalestudy docs PAGE`."""

import difflib
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

from scalestudy.util.errors import UserError

PACKAGE = Path(__file__).parents[1]
ATTRIBUTES = re.compile(r" \{ #[\w-]+ \}$", re.MULTILINE)
"""Anchors after headings, for the site only."""


def manual_folder() -> Path:
    """Folder of the pages: inside an installed package, beside the source otherwise."""
    inside = PACKAGE / "manual"
    if inside.is_dir():
        return inside
    return PACKAGE.parents[1] / "docs"


def pages() -> dict[str, str]:
    """Titles of all pages by their names, such as "guides/imported"."""
    folder = manual_folder()
    titles = {}
    for file in sorted(folder.rglob("*.md")):
        heading = file.read_text(encoding="utf-8").partition("\n")[0]
        name = file.relative_to(folder).with_suffix("").as_posix()
        titles[name] = heading.removeprefix("# ")
    return titles


def page_text(name: str) -> str:
    """Text of a page in Markdown, by its name or the last part of it.

    Raises:
        UserError: There is no such page, or several have this last part.
    """
    known = list(pages())
    # The changelog names pages as files of the source.
    wanted = name.removeprefix("docs/").removesuffix(".md")
    found = [wanted]
    if wanted not in known:
        found = [page for page in known if page.rpartition("/")[2] == wanted]
    if not found:
        raise _no_such_page(name, wanted, known)
    if len(found) > 1:
        raise UserError(
            "the name of one page",
            f"{name!r}, which is {' or '.join(found)}",
            "Name one of them.",
        )
    text = (manual_folder() / f"{found[0]}.md").read_text(encoding="utf-8")
    return ATTRIBUTES.sub("", _with_generated_parts(text))


def _no_such_page(name: str, wanted: str, known: Sequence[str]) -> UserError:
    """Return the error for an unknown page, with the name that is most like it."""
    by_last_part = {page.rpartition("/")[2]: page for page in known}
    action = "List them: scalestudy docs"
    near = difflib.get_close_matches(wanted, [*known, *by_last_part], 1)
    if near:
        page = by_last_part.get(near[0], near[0])
        action = f"Did you mean {page}? {action}"
    return UserError("a page of the manual", repr(name), action)


def _with_generated_parts(text: str) -> str:
    """Insert what the site generates from the code, such as the lists of options."""
    if "<!-- generated:" not in text:
        return text
    # The generator lies among the pages, not in the package: it is the site's hook, too.
    spec = importlib.util.spec_from_file_location(
        "scalestudy_manual",
        manual_folder() / "generate.py",
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    filled: str = module.on_page_markdown(text)
    return filled
