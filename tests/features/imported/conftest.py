"""Files of others, written for a test and read."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalestudy.features.imported.base import Wanted
from scalestudy.features.imported.gather import Elsewhere, gather

sys.path.insert(0, str(Path(__file__).parents[2] / "analysis"))
Read = Callable[..., Elsewhere]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes texts (or bytes) by their names, and reads their folder."""

    def call(files: dict[str, str | bytes], **said: Any) -> Elsewhere:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        source = tmp_path / next(iter(files)) if len(files) == 1 else tmp_path
        return gather([str(source)], Wanted(**said))

    return call
