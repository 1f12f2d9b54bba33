"""The errors a user can meet: what was expected, what was received, what to do."""


class ScalestudyError(Exception):
    """An error that a user can act on; the command line prints it without a traceback.

    Args:
        expected: What would have been right, as a sentence without its full stop.
        received: What was found instead, naming the file, key or value.
        action: What the user can do about it.
    """

    exit_code = 1

    def __init__(self, expected: str, received: str, action: str) -> None:
        self.expected = expected
        self.received = received
        self.action = action
        super().__init__(f"Expected {expected}. Received {received}. {action}")


class UserError(ScalestudyError):
    """The user's input is wrong: nothing was started, nothing was written (exit code 2)."""

    exit_code = 2


class RunError(ScalestudyError):
    """A run failed (exit code 1)."""
