"""A job as its queue reports it."""

from scalestudy.store.records import Record

WAITING = {
    "PENDING",
    "CONFIGURING",
    "REQUEUED",
    "REQUEUE_FED",
    # A site's epilog or an administrator has put the job back, and holds it there.
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "RESV_DEL_HOLD",
    "POWER_UP_NODE",
}
"""States of a job that is not over and does not run."""
RUNNING = {
    "RUNNING",
    # Its processes end: a checkpoint may still be written.
    "COMPLETING",
    "SUSPENDED",
    "STOPPED",
    "SIGNALING",
    "STAGE_OUT",
    "RESIZING",
}
"""States of a job that runs or is about to end."""
ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    # A sibling of the job has started on another cluster of a federation.
    "REVOKED",
    "TIMEOUT",
}
"""States of a job that is over."""
UNSEEN = 53
"""What Slurm reports in place of a signal if a node cannot open the output of a job."""
UNKNOWN = "UNKNOWN"
"""State of a job that its queue has forgotten."""


class JobView(Record):
    """A job as its queue reports it."""

    job: str
    state: str
    reason: str = ""
    """Why it is pending or how it ended, in the queue's own word; "" for none."""
    nodes: str = ""
    """Host list, such as "node[1-2]"."""
    start: str = ""
    """Actual or expected start, local time as ISO 8601; "" if unknown."""
    exit_code: int | None = None
    signal: int | None = None

    @property
    def unseen(self) -> bool:
        """Whether the job ended because its node could not open its output: it does not see that folder."""
        return self.signal == UNSEEN

    @property
    def live(self) -> bool:
        """Whether the job waits or runs."""
        return self.state in WAITING or self.state in RUNNING

    @property
    def waiting(self) -> bool:
        """Whether the job waits."""
        return self.state in WAITING

    @property
    def ended(self) -> bool:
        """Whether the queue reports that the job is over."""
        return self.state in ENDED
