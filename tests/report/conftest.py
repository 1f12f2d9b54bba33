"""Made studies, shared with the tests of analysis; and the mark of tests that start a browser."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: starts a real browser (Chromium)")
