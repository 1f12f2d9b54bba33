"""What a finished run has left beside its result; of many runs read by several processes."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from scalestudy import modules
from scalestudy.machine.cores import granted
from scalestudy.study.epochs import Epochs, read_epochs
from scalestudy.study.gallery_record import GalleryRecord
from scalestudy.study.records import RankRecord
from scalestudy.study.remembered import uncollected
from scalestudy.study.run_folder import RunFolder

MANY = 400
"""Runs from which on other processes are started to read them."""
AT_ONCE = 50
"""Runs that a process sends in one piece."""
MOST = 8
"""Processes: with more, the one that collects is what is waited for."""

ALIKE = ("versions", "build", "environment", "cpus", "devices", "library_folders_dropped")
"""Fields of ranks that many of them share."""


@dataclass(frozen=True, slots=True)
class Records:
    """What lies in the folder of a run, beside its result.

    Attributes:
        epochs: Those that can be gone by.
        wrong: What is wrong with the others.
        ranks: Environments of the ranks.
        gallery: A few validation samples, if it has left them.
    """

    epochs: Epochs
    wrong: tuple[str, ...]
    ranks: tuple[RankRecord, ...]
    gallery: GalleryRecord | None


def read_all(folders: Sequence[Path]) -> list[Records]:
    """Read the folders of runs; whatever is wrong with a file, nothing is raised."""
    with uncollected():
        processes = min(len(granted()), MOST, len(folders) // AT_ONCE) if len(folders) >= MANY else 1
        if processes < 2:
            return list(read_each(folders))
        parts = [folders[index::processes] for index in range(processes)]
        with ThreadPoolExecutor(processes) as pool:
            found = list(pool.map(_by_another, parts))
        return [found[index % processes][index // processes] for index in range(len(folders))]


def read_each(folders: Sequence[Path]) -> Iterator[Records]:
    """The same in this process, one after another."""
    for folder in folders:
        run = RunFolder(folder)
        epochs, wrong = read_epochs(folder)
        yield Records(epochs, tuple(wrong), tuple(run.ranks()), run.gallery_record())


def _by_another(folders: Sequence[Path]) -> list[Records]:
    """Read by a process of its own; by this one what it leaves unread, should it be ended."""
    found: list[Records] = []
    command = [sys.executable, "-P", "-m", modules.READ_RECORDS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump([os.fspath(folder) for folder in folders], process.stdin)
            process.stdin.close()
            while len(found) < len(folders):
                found += pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            process.kill()
    return found + list(read_each(folders[len(found) :]))
