from pathlib import Path

import pytest

from scalestudy.cli import main


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run the command line in a terminal of 120 columns; return exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return run
