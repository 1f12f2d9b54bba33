"""A process that was started to ask something of a task file: it ends in time, and with who asked."""

import faulthandler
import os

from scalestudy.hardware.parent import end_with

ASKED_BY = "SCALESTUDY_ASKED_BY"
"""Variable: number of the process that asks."""
WITHIN = "SCALESTUDY_ANSWER_WITHIN"
"""Variable: seconds that the task file's own code may take."""


def begin() -> None:
    """End with the process that asks."""
    if ASKED_BY in os.environ:
        end_with(int(os.environ[ASKED_BY]))


def users_code() -> None:
    """From here on the code of the task file runs: too long, and the process ends with its stacks."""
    if WITHIN in os.environ:
        faulthandler.dump_traceback_later(float(os.environ[WITHIN]), exit=True)
