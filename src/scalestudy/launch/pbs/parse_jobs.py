"""What `qsub` and `qstat -f -F json` print, as records. Pure: text in, records out.

States, substates and exit statuses are those of the PBS Professional Reference Guide ("States" and "Job
attributes") and of the Administrator's Guide ("Job exit status codes").
"""

import json
import re
from datetime import datetime
from typing import Any

from scalestudy.launch.queue.jobs.view import JobView

STATES = {
    "Q": "PENDING", "W": "PENDING", "H": "PENDING", "T": "PENDING", "M": "PENDING",
    "R": "RUNNING", "B": "RUNNING", "E": "COMPLETING", "S": "SUSPENDED", "U": "SUSPENDED",
}  # fmt: skip
"""PBS's letters of jobs that are not over, in the common words."""
OVER = ("F", "X")
"""A job that is in the history; a task of an array that has ended."""
TERMINATED = 91
"""Substate of a job that was deleted."""
SIGNALLED = 256
"""Exit statuses from here on are this plus the number of the signal that ended the job."""
STATUSES = {-20: "NODE_FAIL", -26: "OUT_OF_MEMORY", -27: "OUT_OF_MEMORY", -29: "TIMEOUT"}
"""Exit statuses by which PBS says itself why a job ended."""
_ID = re.compile(r"(\d+)(\[\d*\])?((?:\.[\w.-]+)?)", re.ASCII)


def parse_qstat(text: str) -> dict[str, JobView]:
    """Jobs by id from `qstat -t -f -F json`; the whole of an array is among them beside its tasks.

    Raises:
        ValueError: If it is not what qstat prints.
    """
    if not text.strip():
        return {}
    told = json.loads(text, strict=False)
    jobs = told.get("Jobs", {}) if isinstance(told, dict) else None
    if not isinstance(jobs, dict):
        raise ValueError("no jobs")
    return {job: _view(job, fields) for job, fields in jobs.items() if isinstance(fields, dict)}


def parse_submitted(text: str) -> str | None:
    """The id that qsub printed, "123.server" or "123[].server", whatever a site prints around it."""
    for line in reversed(text.splitlines()):
        if _ID.fullmatch(line.strip()):
            return line.strip()
    return None


def task(job: str, index: int) -> str:
    """Id of a task of an array: "123[].server" -> "123[4].server"."""
    return job.replace("[]", f"[{index}]", 1)


def whole(job: str) -> str:
    """Id of the whole of an array: "123[4].server" -> "123[].server"; other ids stay."""
    return re.sub(r"\[\d+\]", "[]", job, count=1)


def _view(job: str, fields: dict[str, Any]) -> JobView:
    letter = str(fields.get("job_state", ""))
    if letter in OVER:
        return _ended(job, fields)
    state = STATES.get(letter, letter or "PENDING")
    waits = state == "PENDING"
    reason = "Dependency" if letter == "H" and fields.get("depend") else str(fields.get("comment", ""))
    start = fields.get("estimated", {}).get("start_time") if waits else fields.get("stime")
    if letter == "H":  # nobody can expect when somebody will release it
        start = None
    return JobView(
        job=job, state=state, reason=reason if waits else "", nodes=_nodes(fields), start=_time(start)
    )


def _ended(job: str, fields: dict[str, Any]) -> JobView:
    status = _number(fields.get("Exit_status"))
    signal = status - SIGNALLED if status is not None and status > SIGNALLED else None
    if status in STATUSES:
        state = STATUSES[status]
    elif _number(fields.get("substate")) == TERMINATED:
        state = "CANCELLED"
    elif signal and _used_up(fields):
        state = "TIMEOUT"
    elif status == 0:
        state = "COMPLETED"
    else:
        state = "FAILED"
    code = status if status is not None and 0 <= status < SIGNALLED else None
    return JobView(
        job=job, state=state, nodes=_nodes(fields), start=_time(fields.get("stime")), exit_code=code,
        signal=signal if state == "FAILED" else None,
    )  # fmt: skip


def _used_up(fields: dict[str, Any]) -> bool:
    """Whether a job has had all the time that it asked for."""
    used = _seconds(fields.get("resources_used", {}).get("walltime"))
    limit = _seconds(fields.get("Resource_List", {}).get("walltime"))
    return used is not None and limit is not None and used >= limit


def _nodes(fields: dict[str, Any]) -> str:
    """Hosts of "n1/0*4+n2/0*4", each once: "n1,n2"."""
    places = [place.partition("/")[0] for place in str(fields.get("exec_host", "")).split("+")]
    return ",".join(dict.fromkeys(place for place in places if place))


def _time(text: object) -> str:
    """ISO 8601 of "Tue Oct 11 08:13:45 2022"; "" for what is none."""
    try:
        return datetime.strptime(str(text), "%a %b %d %H:%M:%S %Y").isoformat()
    except ValueError:
        return ""


def _seconds(text: object) -> int | None:
    match = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+)", str(text))
    return None if match is None else (int(match[1] or 0) * 60 + int(match[2])) * 60 + int(match[3])


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None
