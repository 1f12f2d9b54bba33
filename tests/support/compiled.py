"""Compile LaTeX with Debian's TeX and extract the text of the pages."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

needs_tex = pytest.mark.skipif(
    shutil.which("pdflatex") is None or shutil.which("pdftotext") is None,
    reason="needs pdflatex (texlive-latex-recommended) and pdftotext (poppler-utils)",
)


@dataclass(frozen=True)
class Compiled:
    """Text of the pages, excess width of overfull boxes in points, and the fonts listed by pdffonts."""

    text: str
    overfull: tuple[float, ...]
    fonts: str


def compiled(file: Path) -> Compiled:
    """Compile a file in its folder, twice if LaTeX asks for a rerun; a missing character is an error."""
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", file.name]
    for _ in range(2):
        done = subprocess.run(command, cwd=file.parent, capture_output=True, check=False)
        log = done.stdout.decode(errors="replace")
        assert done.returncode == 0, log[-3000:]
        assert "Missing character" not in log, log
        if "Rerun" not in log:
            break
    pdf = str(file.with_suffix(".pdf"))
    text, fonts = (
        subprocess.run(tool, capture_output=True, text=True, check=True).stdout
        for tool in (["pdftotext", "-layout", pdf, "-"], ["pdffonts", pdf])
    )
    wide = tuple(float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log))
    return Compiled(text, wide, fonts)
