"""Fail a test that hangs, by its name and place, and let its fixtures end what they have started."""

import signal
from collections.abc import Generator
from typing import Any

import pytest

SECONDS = 1800
"""For a test, and for setting up its fixtures: far more than any takes on a busy machine.

Where Python itself hangs, in a call of a library, only pytest's `faulthandler_timeout` helps: it prints where
that is, and ends the process.
"""


def _limited() -> Generator[None, Any, Any]:
    def fail(*_: Any) -> None:
        pytest.fail(f"It has run for {SECONDS} s: it hangs.")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


pytest_runtest_setup = pytest_runtest_call = pytest.hookimpl(wrapper=True)(_limited)
