"""Tables of others, looked at."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalestudy.analysis.compliance.base import Finding
from scalestudy.analysis.compliance.look import look
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.foreign.base import Wanted
from scalestudy.analysis.foreign.gather import gather

sys.path.insert(0, str(Path(__file__).parents[1]))
Looked = Callable[..., dict[str, Finding]]


@pytest.fixture
def looked(tmp_path: Path) -> Looked:
    """Findings by their titles, the first of each, of a table or of files by their names."""

    def call(files: str | dict[str, str], **said: Any) -> dict[str, Finding]:
        for name, text in ({"t.csv": files} if isinstance(files, str) else files).items():
            (tmp_path / name).write_text(text)
        findings = analyse("looked at", gather([str(tmp_path)], Wanted(**said)).runs)
        return {each.title: each for each in reversed(look(findings))}

    return call
