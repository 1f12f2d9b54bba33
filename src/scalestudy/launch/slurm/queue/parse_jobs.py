"""What squeue, sacct and scontrol print about jobs, as records. Pure: text in, records out."""

import re
from collections.abc import Iterator, Mapping

from scalestudy.launch.queue.jobs.view import JobView
from scalestudy.launch.queue.submit.mark import MarkedJob, read_mark
from scalestudy.launch.queue.submit.plan import LARGEST_ARRAY

SQUEUE_FORMAT = "%i|%T|%N|%S|%r"
"""The reason last: it alone may hold anything."""
MARKED_FORMAT = "%i|%F|%T|%j|%k"
"""The comment last, in which a site may have its own words."""
SACCT_FORMAT = "JobID,State,ExitCode,NodeList,Start"
_ID = re.compile(r"\d+(_\d+)?")
_FIELD = re.compile(r"(\S+?)=(.*?)(?= \S+?=|$)")


def parse_squeue(text: str) -> dict[str, JobView]:
    """Jobs by id from `squeue -h -r -t all -o SQUEUE_FORMAT`; lines that are none are passed over."""
    views = {}
    for line in text.splitlines():
        fields = line.split("|", 4)
        if len(fields) == 5 and _ID.fullmatch(fields[0].strip()):
            job, state, nodes, start, reason = (field.strip() for field in fields)
            views[job] = JobView(
                job=job, state=state, nodes=_said(nodes), start=_said(start), reason=_said(reason)
            )
    return views


def parse_marked(text: str) -> list[MarkedJob]:
    """Jobs from `squeue -h -r -o MARKED_FORMAT`; those without a mark in their comment are passed over."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|", 4)]
        if len(fields) < 5:
            continue
        job, whole, state, name, comment = fields
        mark = read_mark(comment)
        if mark is not None and _ID.fullmatch(job):
            found.append(MarkedJob(job, whole, name, state, mark))
    return found


def parse_sacct(text: str) -> dict[str, JobView]:
    """Jobs by id from `sacct -P -n -X -o SACCT_FORMAT`; of a job named twice the last line counts.

    Tasks that still wait share one line, "3_[2-5%2]", which is passed over: squeue knows them.
    """
    views = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 5 and _ID.fullmatch(fields[0]):
            job, state, code, nodes, start = fields
            state, _, by = state.partition(" by ")
            number, signal = _codes(code)
            views[job] = JobView(
                job=job, state=state.rstrip("+"), nodes=_said(nodes), start=_said(start),
                exit_code=number, signal=signal, by=by,
            )  # fmt: skip
    return views


def parse_scontrol(text: str) -> dict[str, JobView]:
    """Jobs by id from `scontrol show job -o ID`: a line for each job, or for each task of an array."""
    return {view.job: view for line in text.splitlines() for view in _of_line(line)}


def parse_configuration(text: str) -> dict[str, str]:
    """Settings by name from `scontrol show config`; of one that is named twice the first counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            found.setdefault(key.strip(), value.strip())
    return found


def parse_array_limit(settings: Mapping[str, str]) -> int:
    """Tasks that one array may have; 1 where arrays are switched off.

    Slurm takes indices below MaxArraySize, and no more tasks than `max_array_tasks` of SchedulerParameters:
    see slurm.conf(5).
    """
    size = settings.get("MaxArraySize", "")
    limit = int(size) if size.isdecimal() else LARGEST_ARRAY
    tasks = re.search(r"\bmax_array_tasks=(\d+)", settings.get("SchedulerParameters", ""))
    return max(1, min(limit, int(tasks[1]) if tasks else limit))


def parse_submitted(text: str) -> str | None:
    """The id that `sbatch --parsable` printed, "123" or "123;cluster", whatever a site prints around it."""
    for line in reversed(text.splitlines()):
        job = line.strip().partition(";")[0]
        if job.isdigit():
            return job
    return None


def _of_line(line: str) -> Iterator[JobView]:
    fields = dict(_FIELD.findall(line.strip()))
    if "JobId" not in fields or "JobState" not in fields:
        return
    job = fields["JobId"]
    if "ArrayJobId" in fields:
        job = f"{fields['ArrayJobId']}_{fields.get('ArrayTaskId', '')}"
    if not _ID.fullmatch(job):
        return
    number, signal = _codes(fields.get("ExitCode", ""))
    yield JobView(
        job=job, state=fields["JobState"], reason=_said(fields.get("Reason", "")),
        nodes=_said(fields.get("NodeList", "")), start=_said(fields.get("StartTime", "")),
        exit_code=number, signal=signal,
    )  # fmt: skip


def _codes(text: str) -> tuple[int | None, int | None]:
    """Exit code and signal of "3:0"."""
    match = re.fullmatch(r"(\d+):(\d+)", text.strip())
    if not match:
        return None, None
    code, signal = int(match[1]), int(match[2])
    return code, signal or None


def _said(value: str) -> str:
    """The value, or "" where Slurm has a word for nothing."""
    return "" if value in ("None", "N/A", "Unknown", "(null)", "None assigned", "n/a") else value
