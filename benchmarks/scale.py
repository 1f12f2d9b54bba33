"""Time, memory and file size of report, status and watch for a study of ten thousand runs, against limits.

`.venv/bin/python benchmarks/scale.py [--runs 10000] [--epochs 200]` creates the folder of such a study with
synthetic records and measures each command in a process of its own. `--folder DIR` keeps the folder, or
reuses it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from made_study import make_study

LIMITS = {"report": (30.0, 2**31), "status": (10.0, 2**30)}
"""Limits in seconds and bytes for 10,000 runs of 200 epochs."""


class Measured(NamedTuple):
    """Resources used by a command."""

    seconds: float
    cpu: float
    """CPU seconds of all its processes."""
    peak: int
    """Peak memory in bytes of its largest process."""


def measure(command: list[str], environment: dict[str, str]) -> Measured:
    """Run a Scalestudy command in a process of its own.

    Raises:
        RuntimeError: If it fails, with the end of its output.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        words = [sys.executable, "-m", "scalestudy", *command]
        process = subprocess.Popen(
            words, env=environment, stdout=said, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(
                f"{' '.join(command)}: {said.read().decode(errors='replace')[-2000:]}"
            )
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def line(name: str, found: Measured, small: Measured, ratio: float) -> str:
    """Return a row of the table; the last two columns compare with the small study and with the limit."""
    limit = LIMITS.get(name)
    held = (
        ""
        if limit is None
        else " ok"
        if found.seconds < limit[0] and found.peak < limit[1]
        else " OVER"
    )
    times = found.seconds / small.seconds
    return (
        f"| {name} | {found.seconds:.2f} s | {found.cpu:.2f} s | {found.peak / 2**20:.0f} MiB "
        f"| {times:.1f} for {ratio:.0f} |{held} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="kept, and used again")
    parser.add_argument(
        "--verify", action="store_true", help="verify it too, which reads every byte"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch) / "study"
        small = Path(scratch) / "small"
        if not folder.exists():
            make_study(folder, asked.runs, asked.epochs)
        make_study(small, 100, asked.epochs)
        environment = dict(
            os.environ, XDG_CACHE_HOME=str(Path(scratch) / "cache"), COLUMNS="120"
        )
        commands = {
            "status": ["status"],
            "watch, one picture": ["watch"],
            "report": ["report"],
            "report --format html": ["report", "--format", "html"],
        }
        if asked.verify:
            commands["status --verify"] = ["status", "--verify"]
        print(
            f"{asked.runs} runs of {asked.epochs} epochs, {len(os.sched_getaffinity(0))} cores\n"
        )
        print(
            "| | time | CPU | memory | times as long as 100 runs | limit |\n|-|-:|-:|-:|-:|-|"
        )
        for name, words in commands.items():
            first, *rest = words
            found = [
                measure([first, str(each), *rest], environment)
                for each in (folder, small)
            ]
            print(line(name, *found, ratio=asked.runs / 100), flush=True)
        page = folder / "report" / "report.html"
        print(
            f"\nreport.html: {page.stat().st_size / 2**20:.1f} MiB; of 100 runs "
            f"{(small / 'report' / 'report.html').stat().st_size / 2**20:.1f} MiB"
        )


if __name__ == "__main__":
    main()
