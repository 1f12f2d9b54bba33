"""What a queue says of a job. Slurm's words for states are the common ones: others are put into them."""

from scalestudy.study.records import Record

WAITING = {
    "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT",
    "RESV_DEL_HOLD", "POWER_UP_NODE",
}  # fmt: skip
"""States in which a job is not over and nothing of it runs."""
HELD = {"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
"""Those of them that last until somebody releases the job."""
RUNNING = {
    "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING",
}  # fmt: skip
"""States in which a job runs, or has not quite ended."""
ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "REVOKED", "TIMEOUT",
}  # fmt: skip
"""States of a job that is over."""
UNKNOWN = "UNKNOWN"
"""State of a job that its queue has forgotten."""


class JobView(Record):
    """What a queue says of one job."""

    job: str
    """"123", or "123_4" for a task of an array."""
    state: str
    reason: str = ""
    """Why it is pending, or how it ended, in the queue's own word; "" for none."""
    nodes: str = ""
    """Host list, "node[1-2]"."""
    start: str = ""
    """When it started or is expected to, local time as ISO 8601; "" if that is unknown."""
    exit_code: int | None = None
    signal: int | None = None
    by: str = ""
    """User who cancelled it, by id or name."""

    @property
    def held(self) -> bool:
        """Whether somebody must release it before it can start: when it does, nobody can expect."""
        return self.state in HELD or (self.waiting and self.reason.startswith("JobHeld"))

    @property
    def live(self) -> bool:
        """Whether it waits or runs."""
        return self.state in WAITING or self.state in RUNNING

    @property
    def waiting(self) -> bool:
        """Whether it waits."""
        return self.state in WAITING

    @property
    def ended(self) -> bool:
        """Whether it is over, by the queue's word."""
        return self.state in ENDED
