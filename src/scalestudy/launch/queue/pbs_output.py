"""The output of PBS's qstat: attributes of jobs, and the views of jobs that follow from them.

States, substates and exit statuses are those of the PBS Professional Reference Guide ("States" and "Job
attributes") and of the Administrator's Guide ("Job exit status codes").
"""

import json
from datetime import datetime
from typing import Any

from scalestudy.launch.job_view import JobView
from scalestudy.launch.waiting import Waiting

STATES = {
    "Q": "PENDING",
    "W": "PENDING",
    "H": "PENDING",
    "T": "PENDING",
    "M": "PENDING",
    "R": "RUNNING",
    "E": "COMPLETING",
    "S": "SUSPENDED",
    "U": "SUSPENDED",
}
"""States of jobs that are not over, by PBS's letter."""
HOLDS = {
    "held by its user": Waiting("needs you", "held by you", "qrls {jobs}"),
    "held by the site": Waiting(
        "needs the site",
        "held by an operator: ask your site",
        "qstat -f {jobs}",
    ),
    "held for a dependency": Waiting(
        "will start",
        "waits for another job",
        "qstat -f {jobs}",
    ),
}
"""Meanings of the reasons of held jobs, as `job_view` gives them."""
OVER = "F"
"""State of a job in the history."""
TERMINATED = 91
"""Substate of a job that was deleted."""
SIGNALLED = 256
"""Added to the number of the signal that ended a job; the sum is its exit status."""
STATUSES = {
    -20: "NODE_FAIL",
    -26: "OUT_OF_MEMORY",
    -27: "OUT_OF_MEMORY",
    -29: "TIMEOUT",
}
"""States of jobs that PBS ended, by exit status."""


def parse_qstat(text: str) -> dict[str, dict[str, Any]]:
    """Return the attributes of jobs, by id, from the output of `qstat -f -F json`.

    Raises:
        ValueError: If the text has another form.
    """
    if not text.strip():
        return {}
    # PBS does not escape control characters in variables and comments, which strict JSON forbids.
    answer = json.loads(text, strict=False)
    jobs = None
    if isinstance(answer, dict):
        # Without any job, qstat prints no "Jobs".
        jobs = answer.get("Jobs", {})
    if not isinstance(jobs, dict):
        raise ValueError("no jobs")
    return {job: fields for job, fields in jobs.items() if isinstance(fields, dict)}


def job_view(job: str, fields: dict[str, Any]) -> JobView:
    """Return the view of a job from its attributes."""
    letter = str(fields.get("job_state", ""))
    if letter == OVER:
        return _ended(job, fields)
    state = STATES.get(letter, letter or "PENDING")
    reason = ""
    if letter == "H":
        # A held job has no expected start.
        reason, start = _hold(fields), None
    elif state == "PENDING":
        reason = str(fields.get("comment", ""))
        start = fields.get("estimated", {}).get("start_time")
    else:
        # The comment of a running job only repeats when it started.
        start = fields.get("stime")
    return JobView(
        job=job,
        state=state,
        reason=reason,
        nodes=_nodes(fields),
        start=_time(start),
    )


def _hold(fields: dict[str, Any]) -> str:
    """Return who holds a job, by the letters of its Hold_Types: user, other (an operator) and system.

    PBS itself puts a system hold on a job that waits for another.
    """
    if fields.get("depend"):
        return "held for a dependency"
    if str(fields.get("Hold_Types", "u")) == "u":
        return "held by its user"
    return "held by the site"


def _ended(job: str, fields: dict[str, Any]) -> JobView:
    status = _number(fields.get("Exit_status"))
    substate = _number(fields.get("substate"))
    signal = _signal(status)
    if status in STATUSES:
        state = STATUSES[status]
    elif substate == TERMINATED:
        state = "CANCELLED"
    elif status == 0:
        state = "COMPLETED"
    else:
        state = "FAILED"
    code = None
    if status is not None and 0 <= status < SIGNALLED and not signal:
        code = status
    if state != "FAILED":
        # PBS ends jobs by signals itself, at their time limit for example: the state says more.
        signal = None
    return JobView(
        job=job,
        state=state,
        nodes=_nodes(fields),
        start=_time(fields.get("stime")),
        exit_code=code,
        signal=signal,
    )


def _signal(status: int | None) -> int | None:
    """Return the signal that ended a job or, as shells encode it, the last command of its script."""
    if status is None or status <= 128 or 192 < status <= SIGNALLED:
        return None
    if status > SIGNALLED:
        return status - SIGNALLED
    return status - 128


def _nodes(fields: dict[str, Any]) -> str:
    """Return the hosts of "n1/0*4+n2/0*4", each once: "n1,n2"."""
    hosts = []
    for place in str(fields.get("exec_host", "")).split("+"):
        host = place.partition("/")[0]
        if host and host not in hosts:
            hosts.append(host)
    return ",".join(hosts)


def _time(text: object) -> str:
    """Convert "Tue Oct 11 08:13:45 2022" to ISO 8601; "" for any other text."""
    try:
        return datetime.strptime(str(text), "%a %b %d %H:%M:%S %Y").isoformat()
    except ValueError:
        return ""


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None
