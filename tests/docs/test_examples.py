"""Outputs that pages show consist of what the program can print now, whatever was measured.

The tutorials' commands are run (test_tutorials.py). Outputs on other pages are of studies that no test can repeat,
so their words are compared: three words in a row, between numbers, names and columns, occur in some text of the
program.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from paths import PROJECT, SOURCE
from scalestudy.plugins.engines import ENGINES
from tutorials import FOLDER, TutorialCommand, steps

PAGES = [
    PROJECT / "README.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / ".github").rglob("*.md")),
]
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
QUOTE = re.compile(r'"([A-Z][^"]{20,})"')
"""A sentence in quotation marks."""
OUTPUT = ("", "console", "text")
"""Languages of fenced blocks that may show outputs."""
COMMAND = re.compile(
    r"(\$ )?(scalestudy|pip|python|make|cd|srun|source|git|jupyter|#)\b"
)
DRAWN = re.compile(r"──>|^[│├└ ]+[─│├└]|^\s+│")
"""Lines of diagrams and trees of folders."""
BETWEEN = re.compile(
    r"\bon \d+ workers?\b|\bon vm\b|\S*\w[/.]\w\S*|\b\w+-w\d\S*|[^A-Za-z'’\s-]+|\s{2,}|(?<!\w)-(?!\w)"
)
"""What separates words: labels of rows, paths and points, digits and punctuation, columns, dashes."""
GAP = "|"
"""Stands for a value in a text of the program."""


@cache
def names() -> frozenset[str]:
    """Return the strategies, of which a text may name any."""
    return frozenset(
        row.name for name in ENGINES.built_in() for row in ENGINES.get(name).strategies
    )


def triples(text: str) -> Iterator[tuple[str, ...]]:
    """Yield three words in a row that nothing separates."""
    for part in BETWEEN.split(text):
        words: list[str] = []
        for word in part.lower().split():
            words = [] if word in names() else [*words[-2:], word]
            if len(words) == 3:
                yield tuple(words)


def texts(file: Path) -> Iterator[str]:
    """Yield the texts of a module. A value in a text is a gap, an ending of a plural, or nothing."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            for value in (GAP, "s", ""):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else value
                    for part in node.values
                )


@cache
def printable() -> frozenset[tuple[str, ...]]:
    """Return three words in a row of all texts of the program, its templates and tables."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        for text in texts(file):
            found.update(triples(" ".join(text.split())))
    for file in SOURCE.rglob("*"):
        if file.suffix in (".j2", ".toml", ".md"):
            text = re.sub(r"\{[{%].*?[%}]\}", GAP, file.read_text("utf-8"))
            found.update(triples(" ".join(text.split())))
    return frozenset(found)


def shown(page: Path) -> Iterator[str]:
    """Yield lines of outputs and quoted sentences of a page, except for outputs that a test compares."""
    text = page.read_text("utf-8")
    if page.parent == FOLDER:
        for step in steps(page):
            if isinstance(step, TutorialCommand) and not step.is_compared:
                yield from step.shown
        return
    for _, language, code in FENCE.findall(text):
        if language not in OUTPUT:
            continue
        for line in code.splitlines():
            if not COMMAND.match(line.strip()) and not DRAWN.search(line):
                yield line.partition("  # ")[0]
    for quote in QUOTE.findall(FENCE.sub("", text)):
        yield " ".join(quote.split())


def unknown(page: Path) -> list[str]:
    """Return what a page shows that no text of the program holds."""
    return [
        f"{' '.join(words)}: {line}"
        for line in shown(page)
        for words in triples(line)
        if words not in printable()
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_outputs_on_a_page_are_in_the_words_of_the_program(page: Path) -> None:
    assert unknown(page) == []


@pytest.mark.parametrize(
    ("text", "is_stale"),
    [
        ("```\nRun the points again with other programs closed\n```\n", True),
        ('It says "Not enough runs to tell the two of them apart."', True),
        (
            "```\nnative-w2-s0 is disturbed: other programs used 50% of its cores.\n```",
            False,
        ),
        ("```\n12 points, 12 to run, results in studies/digits\n```", False),
    ],
)
def test_what_the_program_no_longer_prints_is_seen(
    tmp_path: Path, text: str, is_stale: bool
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert bool(unknown(page)) == is_stale
