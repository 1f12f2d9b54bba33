"""Bad inputs end in a message, and the judge would detect it if they did not."""

import faulthandler
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from hostile.case import Case  # noqa: E402 (of the folder above)
from hostile.judge import judge  # noqa: E402


def unclear(arguments: list[str]) -> None:
    sys.exit("no")


def refused(arguments: list[str]) -> None:
    print("Expected a\nReceived b\nDo c")
    sys.exit(2)


def raises(arguments: list[str]) -> None:
    raise KeyError(arguments[0])


def killed(arguments: list[str]) -> None:
    faulthandler.disable()  # of pytest, which would print a traceback into the tests' output
    signal.raise_signal(signal.SIGSEGV)


def waits(arguments: list[str]) -> None:
    signal.pause()


def accepted(arguments: list[str]) -> None:
    Path("result").touch()


def half_written(arguments: list[str]) -> None:
    Path(".half").touch()


def refused_too_late(arguments: list[str]) -> None:
    accepted(arguments)
    refused(arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "must", "verdict"),
    [
        (refused, True, "refused"),
        (unclear, True, "unclear"),
        (raises, False, "traceback"),
        (killed, False, "traceback"),
        (waits, False, "hung"),
        (accepted, False, "accepted"),
        (accepted, True, "taken"),
        (half_written, False, "left behind"),
        (refused_too_late, True, "left behind"),
    ],
)
def test_every_fault_is_seen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    main: object,
    must: bool,
    verdict: str,
) -> None:
    monkeypatch.setattr("scalestudy.cli.main", main)
    outcome = judge(
        Case("any", "one", lambda folder: ["run"], must),
        tmp_path,
        1.0 if main is waits else 60.0,
    )
    assert outcome.verdict == verdict


@pytest.mark.slow
def test_a_part_of_all_bad_inputs_is_refused_or_shown_for_what_it_is() -> None:
    command = [sys.executable, str(BENCHMARKS / "hostile_inputs.py"), "--every", "40"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    inputs, refusals = map(
        int, re.search(r"(?m)^all +(\d+) +(\d+)", done.stdout).groups()
    )
    assert inputs > 40
    assert refusals > inputs / 2
