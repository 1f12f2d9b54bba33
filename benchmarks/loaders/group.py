"""The worker processes of one loader, which receive each command at the same time."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from loaders.node import cached_bytes, own_bytes
from loaders.ways import Task

HERE = Path(__file__).parents[1]


class Workers:
    """Processes of a loader, each pinned to its share of the cores.

    Args:
        name: The loader.
        task: The task of rank 0.
        cores: Cores of all processes.
        files: Files that this loader reads.
    """

    def __init__(
        self, name: str, task: Task, cores: list[int], files: list[Path]
    ) -> None:
        self.name, self.files = name, files
        self._processes = []
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        for rank in range(task.workers):
            share = cores[
                rank * len(cores) // task.workers : (rank + 1)
                * len(cores)
                // task.workers
            ]
            mine = set(share or [cores[rank % len(cores)]])
            own = task._replace(rank=rank, threads=len(mine))
            self._processes.append(
                subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "loaders.worker",
                        name,
                        json.dumps(own._asdict()),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    text=True,
                    env={
                        **os.environ,
                        "TF_CPP_MIN_LOG_LEVEL": "3",
                        "CUDA_VISIBLE_DEVICES": "",
                        "PYTHONPATH": os.pathsep.join(
                            [str(HERE), os.environ.get("PYTHONPATH", "")]
                        ),
                    },
                    preexec_fn=lambda mine=mine: os.sched_setaffinity(0, mine),  # noqa: PLW1509
                )
            )

    def tell(self, command: str) -> list[dict[str, Any]]:
        """Send a command to all workers at once and return their answers.

        Raises:
            RuntimeError: A worker has ended without an answer.
        """
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{command}\n")
            process.stdin.flush()
        answers = []
        for process in self._processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                self._errors.seek(0)
                raise RuntimeError(
                    f"a worker of {self.name} has ended: {self._errors.read()[-2000:]}"
                )
            answers.append(json.loads(line))
        return answers

    def peak(self, command: str, before: int) -> int:
        """Peak memory in bytes on the node during a command, minus `before`, plus cached file pages."""
        most, done = 0, threading.Event()

        def watch() -> None:
            nonlocal most
            while not done.is_set():
                most = max(most, self.held())
                done.wait(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        self.tell(command)
        done.set()
        watcher.join()
        return max(most, self.held()) - before + cached_bytes(self.files)

    def held(self) -> int:
        """Memory of the processes in bytes, without pages of files."""
        return own_bytes(process.pid for process in self._processes)

    def close(self) -> None:
        """Kill the processes."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._errors.close()
