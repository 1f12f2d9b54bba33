"""Run a user's own script on this machine. Rank 0 writes to the terminal, the other ranks to logs."""

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from scalestudy.cluster.placement import Placement, check_placement
from scalestudy.config.formula import suggestion
from scalestudy.config.parse import study_of
from scalestudy.config.point import Point, Terms
from scalestudy.config.run_order import RunOrder
from scalestudy.config.settings import ResolvedLaunch
from scalestudy.config.task_sources import source_files
from scalestudy.features.launch import script_process
from scalestudy.features.launch.arguments import fill_arguments
from scalestudy.features.launch.join import (
    ARGUMENTS,
    DEVICE,
    FOLDER,
    OUT,
    SEED,
    SOURCE,
    STRATEGY,
    WEAK,
    WORKERS,
    torchrun_variables,
)
from scalestudy.features.launch.measured_study import folder_path, measured_point
from scalestudy.features.launch.script_strategy import (
    find_strategy,
    names_joining,
    refuse_alone,
    refuse_keras_3,
    startable_strategies,
)
from scalestudy.features.launch.script_text import script_text
from scalestudy.features.launch.shared_work import GUIDE
from scalestudy.hardware import devices
from scalestudy.hardware.installed import library_path
from scalestudy.hardware.own_process import oom_kills
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.failures import names_another
from scalestudy.launch.local import points_here
from scalestudy.launch.logs import last_lines
from scalestudy.launch.reserve import await_gpus, grant
from scalestudy.launch.run_failures import failure_of_end
from scalestudy.launch.stop_signal import stoppable
from scalestudy.launch.worker_processes import Command, WorkerProcesses, worker_commands
from scalestudy.plugins.strategies import SCRIPT_STRATEGY, traits
from scalestudy.store.records import Failure, Result
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.state import read_deciding_run
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.files import contents
from scalestudy.util.text import plural

PLAIN = {"task": "cnn", "data": {"source": "digits"}}
"""Task and data of the study that resolves strategy and [launch]; they are not used otherwise."""
OnNote = Callable[[str], object]
SEED_LINE = {
    "torch": "torch.manual_seed(workers.seed)",
    "tensorflow": "keras.utils.set_random_seed(workers.seed)",
}
"""The line by which a script of an engine takes the seed of its run."""


@dataclass(frozen=True)
class Script:
    """A script to start with its arguments, and a point with its strategy, workers and device.

    Attributes:
        arguments: Its arguments, with expressions such as `{16*workers}`.
        weak: Whether its epochs grow with the workers on purpose.
    """

    point: Point
    file: str
    arguments: tuple[str, ...] = ()
    out: str | None = None
    weak: bool = False

    def variables(self) -> dict[str, str]:
        """Return the environment variables that configure its processes; see `join`."""
        point = self.point
        variables = {
            DEVICE: point.launch.device,
            SEED: str(point.seed),
            STRATEGY: point.strategy,
            WORKERS: str(point.workers),
            # Workers take this version: a script may have changed `sys.path`, and so what it imports.
            SOURCE: point.data.source.removeprefix("sha256:"),
            ARGUMENTS: shlex.join(self.arguments),
        }
        if self.out:
            # The script may change its folder before it is measured.
            variables[OUT] = os.path.abspath(self.out)
        if self.weak:
            variables[WEAK] = "1"
        return variables

    def filled(self) -> list[str]:
        """Return its arguments with the values of their expressions."""
        return fill_arguments(
            self.arguments,
            workers=self.point.workers,
            seed=self.point.seed,
        )


def script_of(
    file: Path,
    arguments: Sequence[str],
    *,
    workers: int,
    launch: dict[str, Any],
    seed: int = 0,
    out: Path | None = None,
    strategy: str | None = None,
    weak: bool = False,
) -> Script:
    """Return a script to start on this machine's devices and cores.

    The keys in `launch` (device, cpus_per_worker) are as in a study file. `out` is the folder for runs of a
    measured script; if None, they are in `studies`. If `strategy` is None, the script's sources tell it.

    Raises:
        UserError: If the script cannot be started with these settings.
    """
    name = strategy_of(file, strategy, workers)
    # Before anything runs: an expression without a value, or a folder of another script, is refused.
    fill_arguments(arguments, workers=workers, seed=seed)
    sweep = {"strategy": name, "workers": workers, "seed": seed}
    settings = {**PLAIN, "sweep": sweep, "launch": launch}
    (point,) = points_here(study_of(settings, Path("script.toml")))
    refuse_missing_software([point])
    text = script_text(file, arguments)
    point = measured_point(text, name, workers, seed, point.terms)
    folder = _text_or_none(out)
    folder_path(text, folder)
    return Script(point, str(file), tuple(arguments), folder, weak)


def _text_or_none(path: Path | None) -> str | None:
    if not path:
        return None
    return str(path)


def strategy_of(file: Path, strategy: str | None, workers: int) -> str:
    """Return the strategy under which a script starts.

    Raises:
        UserError: If `file` is no file, or no script that can be started under it on so many workers.
    """
    if not file.is_file():
        raise UserError(
            "a Python script",
            f"{file}, which is not a file",
            "Put the script first, then its arguments.",
        )
    startable = startable_strategies()
    if strategy is not None and strategy not in startable:
        close = suggestion(strategy, startable)
        if close:
            remedy = f"Did you mean {close}?"
        else:
            remedy = "Name how the script distributes its training."
        raise UserError(f"--strategy {', '.join(startable)}", strategy, remedy)
    found = find_strategy(file, strategy)
    refuse_alone(file, found.name, workers)
    refuse_keras_3(file, found.name)
    return found.name


def sweep_of(
    file: Path,
    arguments: Sequence[str],
    workers: Sequence[int],
    seeds: Sequence[int],
    **given: Any,
) -> list[Script]:
    """Return a script's runs for all numbers of workers and seeds, in randomised blocks.

    `given` holds further arguments of `script_of`.
    """
    points = []
    named = {}
    for count in workers:
        for seed in seeds:
            script = script_of(
                file,
                arguments,
                workers=count,
                seed=seed,
                **given,
            )
            points.append(script.point)
            named[script.point.name] = script

    def comes_later(point: Point) -> bool:
        return (point.workers, point.seed) != (min(workers), seeds[0])

    order = RunOrder.drawn_from(file.name).arrange(points)
    # First the fewest workers: only beside their samples it shows if others read everything on each worker.
    order.sort(key=comes_later)
    scripts = []
    for place, point in enumerate(order):
        placed = point.model_copy(update={"place": place})
        scripts.append(replace(named[point.name], point=placed))
    return scripts


def run_sweep(scripts: Sequence[Script], on_note: OnNote) -> None:
    """Run scripts one after another. If there are several, those with a result are skipped.

    Raises:
        RunError: If a run fails. The remaining runs are completed first.
        KeyboardInterrupt: As in `run_script`.
    """
    failures: list[RunError] = []
    trained: dict[tuple[int, str], str] = {}
    _note_unmeasured(scripts[0], on_note)
    _note_strategy(scripts[0], on_note)
    largest = max(scripts, key=lambda script: script.point.processes)
    doubt = _apart(largest)
    if doubt:
        on_note(doubt)
    for script in scripts:
        if len(scripts) > 1:
            if _result_of(script):
                on_note(f"{script.point.name}: done before")
                continue
            on_note(script.point.name)
        try:
            run_script(script, on_note)
        except RunError as error:
            if len(scripts) == 1:
                raise
            on_note(f"{script.point.name}: {error}")
            failures.append(error)
        result = _result_of(script)
        if result and result.weights_digest:
            weights = (result.workers, result.weights_digest)
            other = trained.setdefault(weights, result.name)
            # A script that ignores the seed repeats one training, whose spread is zero.
            if other != result.name:
                raise RunError(
                    "different weights from different seeds",
                    f"the same ones from {other} and {result.name}, whose spread would say nothing",
                    f"Add {SEED_LINE[script.point.engine]} after scalestudy.workers().",
                )
    if failures:
        raise failures[0]


def _result_of(script: Script) -> Result | None:
    """Return the result of a measured script's newest finished run, if there is one."""
    path = folder_path(script_text(Path(script.file), script.arguments), script.out)
    if not path.exists():
        return None
    found = read_deciding_run(StudyFolder.open(path).runs(script.point.name))
    if found is None:
        return None
    return found.result


def _note_unmeasured(script: Script, on_note: OnNote) -> None:
    """Name a script that does not import scalestudy, so that its runs give no results."""
    files = source_files(os.path.abspath(script.file)).values()
    # In the text, which also finds __import__("scalestudy").
    if not any(b"scalestudy" in contents(source) for source in files):
        on_note(
            f"{Path(script.file).name} does not import scalestudy, so it will run and nothing will be "
            "measured. `scalestudy launch --help` shows the lines that measure it."
        )


def _note_strategy(script: Script, on_note: OnNote) -> None:
    """Say how a Keras script is started, and what is doubtful about it."""
    name = script.point.strategy
    if name == SCRIPT_STRATEGY:
        return
    doubt = find_strategy(Path(script.file)).doubt
    text = f"Strategy of {Path(script.file).name}: {name}"
    if doubt:
        text += f" ({doubt})"
    on_note(text)
    point = script.point
    # TensorFlow takes all cores for one device, so that each worker needs a logical one.
    many_devices = point.traits.one_process and not point.traits.one_device
    if many_devices and point.workers > 1 and point.launch.device == "cpu":
        on_note(
            f"On CPUs, each worker of {name} is a logical CPU device of one process."
        )


def _apart(script: Script) -> str:
    """Return the doubt that a script's processes ever join; "" without doubt.

    A measured script is asked while it runs; of others only their sources are known.
    """
    point = script.point
    file = Path(script.file)
    if point.processes == 1 or names_joining(file, point.strategy):
        return ""
    return (
        f"{file.name} names nothing by which its {point.processes} processes join, so each seems to train "
        f"alone, on everything: this is no scaling. Write {point.traits.join_line}. See {GUIDE}."
    )


def run_rank(
    file: Path,
    arguments: Sequence[str],
    placement: Placement,
    *,
    device: str,
    seed: int,
    out: Path | None,
    strategy: str | None = None,
    weak: bool = False,
) -> NoReturn:
    """Replace this process, one of several that srun or mpirun has started, by a process of the script.

    Raises:
        UserError: If the script does not exist, or the run has no port.
        RunError: If the host of rank 0 is not found.
    """
    name = strategy_of(file, strategy, placement.size)
    check_placement(placement, strategy=traits(name), workers=placement.size)
    terms = Terms(implementation=name, launch=ResolvedLaunch(device=device))  # type: ignore[arg-type]
    text = script_text(file, arguments)
    point = measured_point(text, name, placement.size, seed, terms)
    script = Script(point, str(file), tuple(arguments), _text_or_none(out), weak)
    if placement.rank == 0:
        doubt = _apart(script)
        if doubt:
            print(f"scalestudy: {doubt}", file=sys.stderr)
    environment = _environment(os.environ, device) | script.variables()
    words = [str(file), *script.filled()]
    if name == SCRIPT_STRATEGY:
        environment |= torchrun_variables(placement)
    else:
        # -P keeps the current folder, whose modules could take the place of ours, out of `sys.path`.
        words = ["-P", "-m", script_process.__name__, "", *words]
    # The new program does not know what this one has not written yet.
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *words], environment)


def run_script(script: Script, on_note: OnNote) -> None:
    """Run a script's workers until all have ended. Logs are kept if it fails or is measured.

    `on_note` is called with messages, such as what the run waits for.

    Raises:
        RunError: If a worker fails (the message names the first one and its last lines, unless these were
            printed), or if there are no free ports.
        KeyboardInterrupt: On Ctrl-C or SIGTERM, after all workers have ended.
    """
    # Only a script that is measured has a folder of results.
    folder = Path(tempfile.mkdtemp(prefix="scalestudy-launch-"))
    run = RunFolder(folder)
    last = script.point.processes - 1
    if last:
        ranks = f"ranks 1 to {last}"
        if last == 1:
            ranks = "rank 1"
        on_note(f"Logs of {ranks}: {folder / 'logs'} (removed when it ends well)")
    with stoppable() as stop, contextlib.ExitStack() as held:
        gpus = await_gpus(held, script.point, on_note)
        point, port, cpus, environment = held.enter_context(grant(script.point, gpus))
        if point.oversubscribed:
            on_note(
                f"Oversubscribed: {point.oversubscribed}; it will be slower than it could be."
            )
        write_point(folder / "point.json", point)
        # Counted before and after: the kernel's out-of-memory killer leaves no message in the process that it ends.
        kills = oom_kills()
        try:
            started = commands(script, run, port, cpus, environment)
            with WorkerProcesses(started) as workers:
                failed = workers.wait()
        except KeyboardInterrupt:
            left = _finish_measured(folder, stop.failure(run))
            # Otherwise the folder holds the only logs of the other ranks.
            if left or not last:
                shutil.rmtree(folder)
            on_note(_stopped(script, left, folder / "logs"))
            raise
    failure = None
    if failed:
        ended_at = workers.ended_at(failed[0])
        failure = failure_of_end(run, failed, ended_at, kills)
    ended = _ended_ranks(folder, last + 1)
    if failure and ended:
        failure = _with_ended(run, failure, ended)
    measured = _finish_measured(folder, failure)
    if failure is None:
        _note_measured(script, measured, on_note)
        shutil.rmtree(folder)
        return
    logs_at = folder / "logs"
    if measured:
        logs_at = measured.path / "logs"
        shutil.rmtree(folder)
    action = "See its output above."
    if last:
        action = f"The logs of all ranks but 0 are in {logs_at}."
    raise RunError("every worker to succeed", _failure_text(failure), action)


def _ended_ranks(folder: Path, count: int) -> list[int]:
    """Return the ranks that have reached the end of the script."""
    ended = []
    for rank in range(count):
        if script_process.done_file(folder, rank).exists():
            ended.append(rank)
    return ended


def _note_measured(script: Script, measured: RunFolder | None, on_note: OnNote) -> None:
    """Say how to see what a script without errors has measured, or that it has measured nothing."""
    if measured:
        study = shlex.quote(str(measured.path.parents[2]))
        on_note(f"Measured: scalestudy report {study}")
        return
    on_note(
        f"Nothing was measured: {script.file} has begun no epoch of workers.epochs(), and no fit with "
        "workers.keras_callback()."
    )
    doubt = _apart(script)
    if doubt:
        on_note(doubt)


def _failure_text(failure: Failure) -> str:
    """Return why a script failed, with the last lines of the rank unless they are in the terminal."""
    text = failure.reason.replace("the task's file", "the script")
    # Rank 0 has written to the terminal.
    if failure.rank and failure.tail:
        for line in failure.tail:
            text += f"\n  | {line}"
        text += "\n"
    return text


def _with_ended(run: RunFolder, failure: Failure, ended: Sequence[int]) -> Failure:
    """Return the failure with the ranks that had ended the script before, without an error.

    They are its cause if the rank that failed only reports that another has gone.
    """
    ranks = ", ".join(map(str, ended))
    if not names_another(failure.reason):
        reason = f"{failure.reason}; rank {ranks} had ended the script before"
        return failure.model_copy(update={"reason": reason})
    # The failed rank lost its connection to one that was gone, and would be blamed for it.
    reason = f"rank {ranks} ended the script early, with exit code 0, and others still waited for it"
    return failure.model_copy(
        update={
            "rank": ended[0],
            "exit_code": 0,
            "reason": f"{reason}: {failure.reason}",
            "tail": last_lines(run, f"rank-{ended[0]}"),
        }
    )


def _stopped(script: Script, measured: RunFolder | None, logs: Path) -> str:
    """Say that a script was stopped, and where what is left of it lies."""
    if measured:
        where = f"what it has measured: {measured.path}"
    elif script.point.processes > 1:
        where = f"not measured, logs: {logs}"
    else:
        # Its output is on the terminal.
        where = "not measured"
    workers = script.point.workers
    return f"Stopped {script.file} ({workers} {plural('worker', workers)}); {where}"


def _finish_measured(folder: Path, failure: Failure | None) -> RunFolder | None:
    """Copy logs and failure to the run folder of a measured script, and return it; None if not measured."""
    try:
        run = RunFolder((folder / "run").read_text())
    except OSError:
        return None
    if (folder / "logs").is_dir():
        shutil.copytree(folder / "logs", run.path / "logs", dirs_exist_ok=True)
    # A run that has written its result has succeeded, whatever ended its processes afterwards.
    if failure and not run.result():
        run.write_failure(failure)
    return run


def _environment(variables: Mapping[str, str], device: str) -> dict[str, str]:
    """Return the variables of a script, which sees all GPUs of the run.

    The script itself chooses the GPU of its LOCAL_RANK, and makes all other decisions.
    """
    # CUDA numbers GPUs by the bus, as NVML does, only if it is told to.
    shown = devices.ORDER
    if device == "cpu":
        shown = devices.showing([])
    return library_path(variables).applied(variables) | shown


def commands(
    script: Script,
    run: RunFolder,
    port: int,
    cpus: Sequence[int],
    environment: Mapping[str, str],
) -> list[Command]:
    """Return the command of each process, in the current folder; rank 0 inherits this process's output."""
    workers = worker_commands(run, script.point.processes, port, cpus, environment)
    folder = str(run.path.absolute())
    device = script.point.launch.device
    processes = []
    for rank, worker in enumerate(workers):
        variables = _environment(worker.environment, device) | script.variables()
        variables[FOLDER] = folder
        log: Path | None = worker.log
        if rank == 0:
            # It writes where this process does, as without scalestudy.
            log = None
            variables.pop("PYTHONUNBUFFERED", None)
        arguments = [
            sys.executable,
            "-P",
            "-m",
            script_process.__name__,
            folder,
            script.file,
            *script.filled(),
        ]
        command = Command(arguments, variables, worker.cpus, log, Path.cwd())
        processes.append(command)
    return processes
