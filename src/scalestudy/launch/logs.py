"""The logs of a run: where they are, and the line that tells why a process failed."""

import re
from collections.abc import Sequence
from pathlib import Path

from scalestudy.store.run_folder import RunFolder

TAIL_LINES = 15
"""Last lines of a log that a failure keeps."""
SEARCHED_LINES = 60
"""Last lines of a log among which the one that tells the cause is searched: noise of launchers may follow."""
_START = re.compile(r"\d{4}-\d\d-\d\dT\S+Z job ")
_NO_CAUSE = re.compile(
    r"[-=]{5,}\s*$|\d{4}-\d\d-\d\dT\S+Z (job|ended|stopped) |scalestudy: rank \d+ of \d+ on |"
    r"asked to stop( \(SIGTERM\))?$"
)
"""Lines of a log that do not explain a failure: those of the job, the workers and mpirun's separators."""
_NOISE = re.compile(
    r"srun: |slurmstepd: |(prted?|mpirun|mpiexec)\b|Primary job +terminated|[IWEF]\d{4} \d\d:|"
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] |WARNING: All log messages before absl|oneDNN|"
    r"To enable the following instructions|.*\boneDNN custom operations are on"
)
"""Lines with which launchers and TensorFlow surround the one that tells what happened."""
_RANK = re.compile(r"^\[rank\d+\]: ?")
"""What PyTorch writes before each line of a rank's traceback."""
_OWN_CAUSE = re.compile(r"scalestudy: Expected ")


def log_files(
    run: RunFolder,
    rank: int | None = None,
    *,
    job: bool = False,
) -> list[tuple[str, Path]]:
    """Return the logs of a run, each with the prefix of its lines: "[0] " or "[job] ".

    The logs are those of all ranks or of one. The job's own log is returned with `job`, without a prefix, and
    if the logs of all ranks are empty.
    """
    job_log = _job_log(run)
    if job:
        return [("", job_log)] if job_log else []
    logs = _rank_logs(run)
    # Where no rank has started, only the job's log can say why.
    if rank is None and job_log and not any(map(_is_filled, logs.values())):
        return [("[job] ", job_log)]
    found = []
    for number, log in logs.items():
        if rank is None or number == rank:
            found.append((f"[{number}] ", log))
    return found


def _job_log(run: RunFolder) -> Path | None:
    """Return the log of a run's job, or else what the job printed before it opened its log."""
    for file in (run.path / "logs" / "job.log", _early_log(run)):
        if file is not None and _is_filled(file):
            return file
    return None


def _rank_logs(run: RunFolder) -> dict[int, Path]:
    """Return the logs of all ranks, in their order."""
    logs = {}
    for file in (run.path / "logs").glob("rank-*.log"):
        number = file.stem.removeprefix("rank-")
        if number.isdigit():
            logs[int(number)] = file
    return dict(sorted(logs.items()))


def _is_filled(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


def last_lines(run: RunFolder, name: str, count: int = TAIL_LINES) -> list[str]:
    """Return the last non-empty lines of a log ("rank-0" or "job"); none if it cannot be read."""
    return _filled_lines(run.path / "logs" / f"{name}.log", count)


def _filled_lines(file: Path | None, count: int) -> list[str]:
    """Return the last non-empty lines of a file; none if it cannot be read."""
    if file is None:
        return []
    try:
        # Programs of other languages write what they like, and a kill may cut a character in two.
        text = file.read_text(errors="replace")
    except OSError:
        return []
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return lines[-count:]


def is_noise(line: str) -> bool:
    """Whether a line of a log is what a launcher or TensorFlow prints about itself."""
    return _NOISE.match(line) is not None


def telling_line(lines: Sequence[str]) -> str:
    """Return the line that tells why a process failed, from the last lines of its log; "" if there are none.

    It is the last message of Scalestudy or the last line of the last traceback, whichever comes later; else
    the last line that is not the noise of a launcher or of TensorFlow; else the last line.
    """
    telling = ""
    in_traceback = False
    for raw in lines:
        line = _RANK.sub("", raw)
        if line.startswith("Traceback (most recent call last):"):
            in_traceback = True
        elif in_traceback and not line.startswith((" ", "\t")):
            # The first line that is not indented names the exception.
            in_traceback, telling = False, line
        elif _OWN_CAUSE.match(line):
            telling = line
    if telling:
        return telling
    for line in reversed(lines):
        if not (_NOISE.match(line) or _NO_CAUSE.match(line)):
            return line
    return lines[-1] if lines else ""


def last_words(run: RunFolder) -> tuple[int | None, list[str]]:
    """Return the rank to blame (0, if it is alone) and the last lines of the job's log, else of rank 0's.

    A job's log that holds only the noise of a launcher is left for rank 0's.
    """
    lines: list[str] = []
    for line in last_lines(run, "job", 1 << 30):
        if _START.match(line):
            # Only lines since the last start: the job may have been requeued.
            lines = []
        if not _NO_CAUSE.match(line):
            lines.append(line)
    # A launcher such as srun tells there that a rank has ended, not why.
    if all(_NOISE.match(line) for line in lines):
        words = last_lines(run, "rank-0", SEARCHED_LINES)
        if words:
            # With several ranks, the last lines of rank 0 may be a consequence.
            if len(list((run.path / "logs").glob("rank-*.log"))) == 1:
                return 0, words
            return None, words
    if lines:
        return None, lines[-SEARCHED_LINES:]
    return None, _filled_lines(_early_log(run), SEARCHED_LINES)


def _early_log(run: RunFolder) -> Path | None:
    record = run.job()
    if record is None or not record.script:
        return None
    return output_of(Path(record.script))


def output_of(script: Path) -> Path:
    """Return the file, beside a job's script, of the output that the job prints before it opens its log."""
    return script.with_suffix(".out")
