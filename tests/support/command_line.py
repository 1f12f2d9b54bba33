"""Run the command line in a process of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from paths import SOURCE, SUPPORT

STUDY = """
task = "{task}"
[data]
source = "digits"
cache = "../prepared"
[train]
epochs = {epochs}
batch_size = 64
[sweep]
strategy = {strategies}
workers = {workers}
seed = {seeds}
"""


def write(
    folder: Path, strategies=("native",), workers=(1,), epochs=2, task="cnn", seeds=(0,)
) -> Path:
    """Write a study file. Its data are prepared in the folder above, once for all tests of a process."""
    file = folder / "study.toml"
    text = STUDY.format(
        task=task,
        strategies=json.dumps(list(strategies)),
        workers=list(workers),
        epochs=epochs,
        seeds=list(seeds),
    )
    file.write_text(text)
    return file


def start(
    *arguments: object,
    cwd: Path,
    module: str = "scalestudy",
    before: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """Start the command line; `module="stand_in"` replaces training by the actions that `plan` sets.

    `before` is a command prefix, for example for a cgroup.
    """
    command = [*before, sys.executable, "-m", module, *map(str, arguments)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(SUPPORT)])
    }
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def scalestudy(
    *arguments: object,
    cwd: Path,
    module: str = "scalestudy",
    before: Sequence[str] = (),
) -> tuple[int, str]:
    process = start(*arguments, cwd=cwd, module=module, before=before)
    output, _ = process.communicate(timeout=900)
    return process.returncode, output


def plan(folder: Path, plans: dict[str, dict[str, object]]) -> None:
    """Set the actions of stand-in workers, by point."""
    (folder / "studies").mkdir(exist_ok=True)
    (folder / "studies" / "plan.json").write_text(json.dumps(plans))


def workers_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = process.info["cmdline"] or []
        if (
            {"scalestudy.worker", "stand_in"} & set(command)
            and str(folder) in command[-1]
            and process.info["status"] != "zombie"
        ):
            found.append(process)
    return found


def wait_for(
    condition, what: str, process: subprocess.Popen[str] | None = None
) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        assert process is None or process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
