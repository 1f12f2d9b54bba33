"""Files of numbers that tests write and read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalestudy.features.imported.gather import Imported, gather
from scalestudy.features.imported.imported_table import ImportOptions

Read = Callable[..., Imported]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write texts to these file names and read them."""

    def call(files: dict[str, str | bytes], **options: Any) -> Imported:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return gather([str(tmp_path / name) for name in files], ImportOptions(**options))

    return call
