"""The log files of a run: the same for all launchers."""

from pathlib import Path

from scalestudy.study.run_folder import RunFolder

TAIL_LINES = 15


def log_files(run: RunFolder, rank: int | None = None, *, job: bool = False) -> list[tuple[str, Path]]:
    """The run's logs with what stands before their lines: "[0] ", or "[job] ".

    As long as no rank has said anything, all there is to see is in the job's: why they could not be started.

    Args:
        run: The run.
        rank: One rank; all when None.
        job: The job's own log instead; nothing stands before its lines then.
    """
    folder = run.path / "logs"
    jobs = [file for file in (folder / "job.log",) if file.exists()]
    if job:
        return [("", file) for file in jobs]
    ranks = [int(file.stem[5:]) for file in folder.glob("rank-*.log") if file.stem[5:].isdigit()]
    if rank is None and jobs and not any(_says(folder / f"rank-{each}.log") for each in ranks):
        return [("[job] ", file) for file in jobs]
    return [
        (f"[{each}] ", folder / f"rank-{each}.log") for each in sorted(ranks) if rank is None or each == rank
    ]


def _says(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


def last_lines(run: RunFolder, name: str, count: int = TAIL_LINES) -> list[str]:
    """The last lines of a log that are not empty, "rank-0" or "job"; none where it cannot be read."""
    try:
        text = (run.path / "logs" / f"{name}.log").read_text(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]
