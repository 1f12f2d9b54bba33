"""The log files of a run: the same for all launchers."""

from pathlib import Path

from scalestudy.study.run_folder import RunFolder


def log_files(run: RunFolder, rank: int | None = None, *, job: bool = False) -> list[tuple[str, Path]]:
    """The run's logs with what stands before their lines: "[0] ", or nothing for a job's.

    Args:
        run: The run.
        rank: One rank; all when None.
        job: The job's own log instead.
    """
    folder = run.path / "logs"
    if job:
        return [("", file) for file in (folder / "job.log",) if file.exists()]
    ranks = [int(file.stem[5:]) for file in folder.glob("rank-*.log") if file.stem[5:].isdigit()]
    return [
        (f"[{each}] ", folder / f"rank-{each}.log") for each in sorted(ranks) if rank is None or each == rank
    ]
