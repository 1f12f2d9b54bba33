"""Commands that train: `run`, `submit` and `launch`."""

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from scalestudy.cli.options import (
    AtMostOption,
    DeviceOption,
    DryRunOption,
    EpochsOption,
    OpenOption,
    ReportOption,
    ResultsOption,
    SamplesOption,
    StudyFile,
    argument,
    option,
    seconds_given,
    worker_counts,
)
from scalestudy.cli.printing import err, open_page, out
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.analysis.next_runs import Limits, Until
    from scalestudy.app.plan import Request
    from scalestudy.launch.launcher import Options, Overview


UntilOption = Annotated[
    Literal["decided", "timed"] | None,
    option(
        "Run only what the decision needs, until it stands; timed: only short timing runs, which answer"
        " time and cost, not quality.",
        default="run the whole grid",
    ),
]
BudgetOption = Annotated[
    str | None,
    option(
        "With --until, the most it may cost, in hours of the billed unit (by default workers): 20h.",
        "HOURS",
        "the cost of five seeds of the grid",
    ),
]
OPTION = re.compile(
    r"-n\d*|--(workers|seeds?|device|strategy|cpus-per-worker|weak-scaling|private-network|out|help)(=.*)?",
    re.DOTALL,
)
"""Options of `launch`; after the script, they would be passed to the script."""


def run_study_command(
    study: StudyFile = Path("study.toml"),
    folder: ResultsOption = None,
    dry_run: DryRunOption = False,
    at_most: AtMostOption = None,
    repeat: Annotated[
        bool,
        option(
            "Also repeat runs on whose cores others computed.",
            name="--repeat-disturbed",
        ),
    ] = False,
    report: ReportOption = True,
    until: UntilOption = None,
    budget: BudgetOption = None,
    epochs: EpochsOption = None,
    samples: SamplesOption = None,
    show: OpenOption = False,
) -> None:
    """Run the missing points of a study, then write its report.

    With --until decided, time every row first, and train only what the decision needs, with as many seeds as
    it needs. With --until timed, only time the rows, for time and cost of the planned training in minutes.
    Meanwhile report/live.html of the results folder shows progress, losses and what is next; a browser loads
    it again by itself, without a server, until the study ends.

    --epochs and --samples say which training is planned, as [plan] in the study file does.

    After Ctrl-C, run it again to continue. With launch.on = "slurm" or "pbs" the points are submitted and
    watched; Ctrl-C leaves their jobs alone. With --at-most K the next point is submitted when one has ended.
    """
    from scalestudy.analysis.next_runs import Limits
    from scalestudy.app.plan import request_of
    from scalestudy.app.run_study import Interrupted, run_study
    from scalestudy.app.until import run_until
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.launch.launcher import Options
    from scalestudy.report.live_page import LivePage

    options = Options(at_most=at_most, repeat=repeat)
    request = request_of(study, folder).planning(epochs=epochs, samples=samples)
    limits = None
    if until:
        limits = Limits(seconds_given(budget, "--budget"))
    elif budget:
        raise UserError(
            "--until decided with --budget",
            "--budget alone",
            "Add --until decided.",
        )
    if dry_run:
        print_dry_run(request, options, limits, until or "decided")
        return
    # With the options of this call: without --out, for example, it would run into another folder.
    resume = _resume_command(
        study,
        {
            "--out": folder,
            "--epochs": epochs,
            "--samples": samples,
            "--until": until,
            "--budget": budget,
        },
    )
    page = LivePage(request.target, shown=open_page if show else None)
    terminal = Terminal(page=page)
    try:
        if limits is None:
            result = run_study(
                request,
                listener=terminal,
                options=options,
                report=report,
            )
        else:
            result = run_until(
                request,
                limits,
                until or "decided",
                listener=terminal,
                options=options,
                report=report,
            )
    except Interrupted as interrupted:
        if interrupted.goes_on:
            where = shlex.quote(str(request.target))
            text = (
                f"\nThe jobs continue. Watch them with: scalestudy status {where} --live"
                f"\nCancel them with: scalestudy cancel {where}"
            )
        else:
            text = f"\nInterrupted; finished runs are kept. Resume with: {resume}"
        err().print(text, markup=False)
        # As shells report Ctrl-C: 128 and the number of SIGINT.
        raise typer.Exit(130) from None
    finally:
        # Else a browser would load it again for ever.
        page.end()
    # Nothing was left to run.
    if show and not page.was_shown:
        open_page(request.target / "report" / "report.html")
    if result.overview.disturbed:
        _note_disturbed(result.overview, resume)
    if result.overview.failed:
        err().print(f"Run the failed points again with: {resume}", markup=False)
    # For scripts: the study went to its end, but not every point succeeded.
    raise typer.Exit(1 if result.failures else 0)


def _resume_command(study: Path, options: dict[str, object]) -> str:
    """The command that goes on with a study, with those of these options that were given."""
    words = ["scalestudy", "run", str(study)]
    for name, given in options.items():
        if given:
            words += [name, str(given)]
    return shlex.join(words)


def _note_disturbed(overview: "Overview", resume: str) -> None:
    disturbed = overview.disturbed
    first, *others = dict.fromkeys([status.disturbed for status in disturbed])
    reasons = first
    if others:
        reasons = f"{first}, …"
    err().print(
        f"{len(disturbed)} of {len(overview.points)} runs are disturbed ({reasons}), so their times are too long. "
        f"Repeat them when the machine is idle: {resume} --repeat-disturbed",
        markup=False,
    )


def print_dry_run(
    request: "Request",
    options: "Options",
    limits: "Limits | None" = None,
    until: "Until" = "decided",
) -> None:
    """Print what running or submitting would do, without starting or writing anything."""
    from scalestudy.app.run_study import dry_run
    from scalestudy.app.until import dry_run_until
    from scalestudy.cli.terminal_listener import Terminal

    if limits is None:
        texts = dry_run(request, options, listener=Terminal())
    else:
        texts = dry_run_until(request, limits, until, options, listener=Terminal())
    for text in texts:
        out().print(text, markup=False)


def submit_command(
    study: StudyFile = Path("study.toml"),
    folder: ResultsOption = None,
    dry_run: DryRunOption = False,
    at_most: AtMostOption = None,
    resubmit: Annotated[
        int, option("How often a failed point may be submitted again.", "N", min=0)
    ] = 3,
    after: Annotated[
        str | None,
        option(
            "Job that must succeed before these start, such as one that makes data.",
            "JOB",
        ),
    ] = None,
    point: Annotated[
        str | None,
        option(
            "With --dry-run, print this point's job script.",
            "POINT",
            name="--point",
        ),
    ] = None,
    scripts: Annotated[
        Path | None,
        option(
            "With --dry-run, write the job script of every point into this folder.",
            "DIR",
            name="--all",
        ),
    ] = None,
) -> None:
    """Submit the missing points of a study to its queue, Slurm or PBS Professional.

    You can log out afterwards: no Scalestudy process has to keep running. Points that are done, queued or
    running are left alone. A failed point is submitted again. Its run continues if it was interrupted (by the
    time limit, a node failure, preemption or cancellation) and has a checkpoint; otherwise it starts anew.

    With --at-most K, call `submit` again for the remaining points when jobs have ended.
    """
    from scalestudy.app.plan import request_of
    from scalestudy.app.run_study import submit_study
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.launch.launcher import Options, launcher_of, queues

    request = request_of(study, folder)
    loaded = request.study
    # Runs on this machine end with their process: nobody could log out after submitting them.
    if not launcher_of(loaded).detached:
        names = " or ".join(f'"{name}"' for name in queues())
        raise UserError(
            f"launch.on = {names} for `scalestudy submit`",
            f'"{loaded.launch.on}"{loaded.place.of("launch.on", "launch")}',
            f"Set on = {names} under [launch], or run it on this machine: scalestudy run {study}",
        )
    options = Options(
        at_most=at_most,
        resubmissions=resubmit,
        after=after,
    )
    for name, given in (("--point", point), ("--all", scripts)):
        if given is not None and not dry_run:
            raise UserError(f"{name} with --dry-run", f"{name} alone", "Add --dry-run.")
    if scripts is not None and point is not None:
        raise UserError("--point or --all", "both", "Leave one out.")
    if scripts is not None or point is not None:
        _show_scripts(request, options, point, scripts)
        return
    if dry_run:
        print_dry_run(request, options)
        return
    where = shlex.quote(str(request.target))
    if submit_study(request, options, listener=Terminal()):
        out().print(f"Watch it with: scalestudy status {where} --live", markup=False)
    else:
        out().print(
            f"Nothing was submitted. See scalestudy status {where}",
            markup=False,
        )


def _show_scripts(
    request: "Request",
    options: "Options",
    point: str | None,
    folder: Path | None,
) -> None:
    """Print the job script of a point, or write those of all points into a folder."""
    from scalestudy.app.run_study import job_scripts
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.launch.queue.queue_launcher import write_script

    found = job_scripts(request, options, point=point, listener=Terminal())
    if folder is None:
        (text,) = found.values()
        # Not wrapped: the parts of a broken line would be other commands.
        out().print(
            text,
            markup=False,
            soft_wrap=True,
            end="",
        )
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        try:
            write_script(folder / f"{name}.sh", text)
        except FileExistsError as error:
            expected = f"a folder without earlier job scripts for --all {folder}"
            raise UserError(
                expected,
                f"{error.filename}",
                "Name another folder, or remove them.",
            ) from None
    out().print(f"{len(found)} job scripts are in {folder}", markup=False)


def launch_command(
    script: Annotated[Path, argument("Python script. Its arguments follow it.")],
    arguments: Annotated[list[str] | None, argument("Arguments of the script.")] = None,
    workers: Annotated[
        str | None,
        option(
            "Number of workers, or several as 1,2,4.",
            "N",
            "1",
            name=("--workers", "-n"),
        ),
    ] = None,
    seed: Annotated[int, option("First seed of a measured script.", min=0)] = 0,
    seeds: Annotated[
        int, option("Runs of a measured script for each number of workers.", "N", min=1)
    ] = 1,
    device: DeviceOption = "auto",
    cpus_per_worker: Annotated[
        int | None, option("Cores of each worker.", "N", "1 on CPUs", min=1)
    ] = None,
    private: Annotated[
        bool,
        option(
            "Run in a network of its own, which others do not reach, and which reaches no other machine.",
            name="--private-network",
        ),
    ] = False,
    folder: Annotated[
        Path | None,
        option(
            "Folder for the runs of a measured script.",
            "DIR",
            "studies/SCRIPT",
            name="--out",
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        option(
            "How a script is distributed: ddp, horovod, multiworker, mirrored or single.",
            "NAME",
            "by its imports",
        ),
    ] = None,
    weak: Annotated[
        bool,
        option(
            "An epoch of the script grows with the workers on purpose.",
            name="--weak-scaling",
        ),
    ] = False,
) -> None:
    """Train with your own PyTorch or Keras script on several workers.

    A script for torchrun, Horovod, MultiWorkerMirroredStrategy or MirroredStrategy runs as it is, with the
    environment variables of its launcher. For report, advise and compare, one line measures fit of Keras:

    \b
      model.fit(..., callbacks=[scalestudy.workers().keras_callback("val_accuracy")])

    Three lines measure a loop of PyTorch:

    \b
      workers = scalestudy.workers()
      for epoch in workers.epochs(10, model):      # was: for epoch in range(10)
          ...; workers.count(len(x), loss)         # after each step
          workers.quality("accuracy", right, of)   # after the evaluation

    Arguments may follow from the workers: --global_batch_size '{16*workers}'.

    Options of launch come before the script. Rank 0 writes to this terminal, the other ranks to logs. If a
    rank fails, all are stopped, and its last lines are shown. See `scalestudy docs reference/scripts`.
    """  # noqa: D301 (click keeps lines after a backspace as they are)
    from scalestudy.cluster.resolve import resolve
    from scalestudy.features.launch.script_runs import run_rank, run_sweep, sweep_of

    keys: dict[str, Any] = {"device": device, "open_ports": not private}
    if cpus_per_worker is not None:
        keys["cpus_per_worker"] = cpus_per_worker
    words = script_arguments(script, arguments or [])
    # Under torchrun, srun or mpirun, this process is one of the workers.
    place = resolve(os.environ)
    if place.size > 1:
        if workers is not None or seeds > 1:
            raise UserError(
                f"no -n nor --seeds, since {place.source} has started {place.size} processes",
                "one of them",
                "Leave them out: each of those processes is a worker, and --seed gives the seed.",
            )
        # It replaces this process, and does not return.
        run_rank(
            script,
            words,
            place,
            device=device,
            seed=seed,
            out=folder,
            strategy=strategy,
            weak=weak,
        )
    counts = worker_counts(workers or "1")
    given: dict[str, Any] = {
        "launch": keys,
        "out": folder,
        "strategy": strategy,
        "weak": weak,
    }
    planned = sweep_of(script, words, counts, range(seed, seed + seeds), **given)
    run_sweep(planned, lambda text: err().print(text, markup=False, soft_wrap=True))


def script_arguments(script: Path, words: list[str]) -> list[str]:
    """Return the script's own arguments, without a leading `--`.

    Raises:
        UserError: They contain an option of launch, which could be meant for either.
    """
    # The user has said that all of them are the script's.
    if words[:1] == ["--"]:
        return words[1:]
    misplaced = [word for word in words if OPTION.fullmatch(word)]
    if misplaced:
        raise UserError(
            f"options of launch before {script}",
            f"{', '.join(misplaced)} after it",
            f"Write `scalestudy launch OPTIONS {script} …`. Options of the script go after --: "
            f"`{script} -- {' '.join(words)}`.",
        )
    return words
