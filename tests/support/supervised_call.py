"""A supervised worker of rank 1 that calls `model()` of task.py: `python -m supervised_call RUN_DIR`."""

import os
import sys
from pathlib import Path

from scalestudy import worker
from scalestudy.launch.supervise import supervise
from scalestudy.store.run_folder import RunFolder


def main(folder: str) -> int:
    """Work in this folder, which is the current one; parent and child return from here."""

    def train() -> int:
        import task

        return task.model() or 0

    def work(path: Path, _: object) -> int:
        return supervise(RunFolder(path), 1, train)

    worker._take_rank = work
    code = worker.main([folder])
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    os._exit(main(sys.argv[1]))
