"""`scalestudy launch`: a Keras script of one's own, on several workers."""

from pathlib import Path
from typing import Annotated

import typer

from scalestudy.study.launchers import DEFAULT as HERE
from scalestudy.study.strategies import DEFAULT

# \b keeps the lines as they are.
EPILOG = """\b
The three lines of a script that trains with model.fit(x, y, ...):
  import scalestudy
  workers = scalestudy.workers()               # right after the imports
  history = workers.fit(model, x, y, ...)      # was: model.fit(x, y, ...)
  if workers.is_chief: model.save("m.keras")   # around what is to happen once
\b
A batch is that of all workers together, as on one worker: any number of workers gives the same weights to
rounding. workers.fit(..., batch="per-worker") gives each worker a batch of its own; then think of the rate:
workers.scaled(1e-3). Also: workers.evaluate, workers.predict, workers.rank, workers.size, workers.broadcast.
\b
Examples:
  scalestudy launch -n 4 --strategy horovod train.py --epochs 10
  scalestudy launch -n 2 --strategy multiworker --dry-run train.py
  python train.py                               # one worker, plain Keras
docs/existing-scripts.md says what is exact, and what not.
"""

OURS = ("-n", "--workers", "--strategy", "--dry-run")
"""Options that are easily written after the script, where they are the script's own."""


def launch(
    script: Annotated[Path, typer.Argument(help="Python script; what follows it are its own arguments.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    workers: Annotated[int, typer.Option("-n", "--workers", min=1, help="Number of workers.")] = 1,
    strategy: Annotated[
        str,
        typer.Option(help="How workers combine their gradients: mirrored, multiworker, horovod, virtual."),
    ] = DEFAULT,
    device: Annotated[str, typer.Option(help="What workers compute on: auto, cpu or gpu.")] = "auto",
    cpus_per_worker: Annotated[
        int | None, typer.Option(min=1, help="Cores of each worker; 1 on CPUs when absent.")
    ] = None,
    on: Annotated[
        str, typer.Option(help="Where: this machine; for a queue the line for its job script is told.")
    ] = HERE,
    logs: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the logs of all ranks but 0; among temporary files when absent.", metavar="DIR"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be started; start nothing.")
    ] = False,
) -> None:
    """Train with a Keras script of your own on several workers, after three changed lines.

    Rank 0 has this terminal; the output of the others goes to their logs. When a rank fails all are ended,
    and it is named with its last lines.
    """
    from scalestudy.cli.console import err, out
    from scalestudy.features.scripts.launch import start_lines
    from scalestudy.features.scripts.start import run_here, script_of

    late = [each for each in arguments or () if each in OURS]
    if late and workers == 1 and strategy == DEFAULT:
        words = f"{', '.join(late)} went to {script.name}: options of launch stand before the script."
        err().print(words, markup=False, soft_wrap=True)
    launch_keys = {"device": device} | (
        {} if cpus_per_worker is None else {"cpus_per_worker": cpus_per_worker}
    )
    found = script_of(
        script, tuple(arguments or ()), strategy=strategy, workers=workers, launch=launch_keys, on=on
    )
    if dry_run:
        for line in start_lines(found):
            out().print(line, markup=False, soft_wrap=True)
        return
    run_here(found, logs, lambda text: err().print(text, markup=False, soft_wrap=True))
