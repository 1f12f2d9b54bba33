"""Consoles of the command line, and how errors and bugs are printed."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from scalestudy.util.errors import ScalestudyError, UserError
from scalestudy.util.text import plural

if TYPE_CHECKING:
    from rich.console import Console

    from scalestudy.report.document import Document


def out() -> "Console":
    """Console of standard output. Long lines are not wrapped, so that paths can be copied."""
    from scalestudy.report.as_terminal import PlainConsole

    width = None
    # A file or a pipe has no width, unless COLUMNS states one.
    if not sys.stdout.isatty():
        width = get_terminal_size((160, 40)).columns
    return PlainConsole(
        highlight=False,
        soft_wrap=True,
        width=width,
    )


def err() -> "Console":
    """Console of standard error."""
    from scalestudy.report.as_terminal import PlainConsole

    return PlainConsole(
        highlight=False,
        soft_wrap=True,
        stderr=True,
    )


def open_page(page: Path) -> None:
    """Open a page in the browser; without a desktop, say where the page is."""
    import webbrowser

    # A browser for terminals would take the one in which the command prints.
    desktop = sys.platform == "darwin"
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        if os.environ.get(name):
            desktop = True
    if desktop and webbrowser.open(page.resolve().as_uri()):
        return
    note = f"No browser here. Open the page on a desktop: {page}"
    err().print(note, markup=False)


@contextmanager
def writing(file: Path | None) -> Iterator[None]:
    """Turn a file that cannot be written into a UserError."""
    try:
        yield
    except OSError as error:
        what = f"{file or error.filename}: {error.strerror}"
        raise UserError(
            "a file that can be written",
            what,
            "Name another with --out.",
        ) from error


def write_new(file: Path, text: str, *, force: bool) -> None:
    """Write a file for the user to fill in.

    Raises:
        UserError: It exists and `force` is not set, or it cannot be written.
    """
    from scalestudy.util.targets import (
        refuse_inside_study,
        refuse_link,
        refuse_new_at_root,
        refuse_old,
        write_named,
    )

    refuse_inside_study(file)
    refuse_new_at_root(file)
    refuse_old(file, force=force)
    refuse_link(file)
    with writing(file):
        write_named(file, text)


def show_document(
    document: "Callable[[], Document]",
    form: str,
    file: Path | None,
    programs: Mapping[str, Callable[[], str]],
) -> None:
    """Print a document, or write it into a file, with its figures in a folder next to it.

    Args:
        document: Makes the document, which the formats for programs do not need.
        form: "table", or one of `FORMS` or of `programs`.
        file: Where to write it; None to print it.
        programs: Functions that render the formats for programs.
    """
    from scalestudy.report.as_terminal import terminal
    from scalestudy.report.write_document import html, markdown, write_document
    from scalestudy.util.targets import write_named

    console = out()
    # An empty text stands for a document that is written with its figures, below.
    if form in programs:
        text = programs[form]()
    elif form == "table":
        text = terminal(document(), console.width, console.is_terminal and file is None)
    elif file:
        text = ""
    elif form == "html":
        text = html(document())
    else:
        text = markdown(document())
    # Not by the console, which takes brackets for markup and lays out anew.
    if file is None:
        print(text, end="")
        return
    figures: list[Path] = []
    with writing(file):
        if text:
            write_named(file, text)
        else:
            figures = write_document(document(), form, file)[1:]
    beside = ""
    if figures:
        count = f"{len(figures)} {plural('figure', len(figures))}"
        beside = f" and {count} in {figures[0].parent}"
    err().print(f"Wrote {file}{beside}", markup=False)


def print_error(error: ScalestudyError) -> None:
    """Print the three parts of an error, each on its own line."""
    from rich.text import Text

    console = err()
    rows = (
        ("Expected", error.expected),
        ("Received", error.received),
        ("", error.action),
    )
    console.print(Text("Error", style="bold red"))
    # As Text, not markup: a path or a value may hold brackets.
    for label, text in rows:
        start = "  "
        if label:
            start = f"  {label:<9}"
        console.print(Text.assemble((start, "red"), text))


def usage_error(error: Exception) -> UserError | None:
    """What a command line that cannot be parsed means to the user; None for any other error."""
    import difflib

    from typer import BadParameter

    from scalestudy.config.removed import what_instead

    # The base is UsageError, which typer does not export.
    if not isinstance(error, BadParameter.__bases__):
        return None
    wrong: Any = error
    ctx, option = wrong.ctx, getattr(wrong, "option_name", None)
    # Click's own sentence becomes a part of ours.
    received = wrong.format_message().rstrip(".").removeprefix("Got ")
    received = received[:1].lower() + received[1:].replace("Value error, ", "")
    if ctx is None:
        return UserError(
            f"{option} as --help shows it",
            received,
            "Add --help to the command.",
        )
    see = f"See {ctx.command_path} --help"
    if option is None:
        usage = " ".join(ctx.get_usage().split()).removeprefix("Usage: ")
        return UserError(f"`{usage}`", received, see)
    options = []
    for param in ctx.command.params:
        for name in (*param.opts, *param.secondary_opts):
            # Names of arguments have no dash.
            if name.startswith("-"):
                options.append(name)
    near = difflib.get_close_matches(option, options, 1)
    action = see
    if near:
        action = f"Did you mean {near[0]}? {see}"
    # Spelt right, but of another command.
    if option in _options_below(ctx.find_root().command):
        action = f"Other commands have it. {see}"
    action = what_instead("options", f"{command_words(ctx)} {option}") or action
    return UserError(f"an option of `{ctx.command_path}`", option, action)


def command_words(ctx: Any) -> str:
    """The words of a command line without the program: "model export"."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(words)


def _options_below(command: Any) -> set[str]:
    """Names of all options of a command and of those below it."""
    names: set[str] = set()
    for param in command.params:
        names.update(param.opts)
    for below in getattr(command, "commands", {}).values():
        names |= _options_below(below)
    return names


class Bug(ScalestudyError):
    """A bug in Scalestudy (exit code 70, EX_SOFTWARE in sysexits.h)."""

    exit_code = 70


def bug_of(error: Exception) -> Bug:
    """Describe the error as a bug, with its traceback in a file that the user can send."""
    import traceback

    place = ""
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    what = f"{type(error).__name__}: {error}"
    where = "Please"
    # Into a file, not the terminal: a user who cannot act on it should see the three parts.
    file = _written("".join(traceback.format_exception(error)))
    if file:
        where = f"Its traceback is in {file}: please"
    return Bug(
        "a command that succeeds, or explains why not",
        f"a bug in scalestudy: {what[:500]}{place}",
        f"{where} report it with the command and its files, so that it can be fixed.",
    )


def _written(text: str) -> str | None:
    """Write the traceback to a new temporary file, readable only by the user; None if that is impossible."""
    import platform
    import tempfile
    from importlib.metadata import version

    head = f"scalestudy {version('scalestudy')}, Python {platform.python_version()}, {platform.platform()}\n"
    try:
        # Paths and values in it concern nobody else on the machine.
        handle, name = tempfile.mkstemp(".txt", "scalestudy-bug-")
        # The traceback may quote a text that UTF-8 cannot encode: perhaps that is the bug.
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{head}command: {sys.argv!r}\n{text}")
    except OSError:
        return None
    return name
