"""`scalestudy launch`: run a user's own script on several workers."""

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.console import err
from scalestudy.cli.console import out as console
from scalestudy.cli.options import DeviceOption, DryRunOption, StrategyOption
from scalestudy.config.targets import refuse_inside_study
from scalestudy.plugins.strategies import DEFAULT
from scalestudy.util.errors import UserError

OPTION = re.compile(
    r"-n\d*|--(workers|seeds?|strategy|device|cpus-per-worker|logs|out|dry-run|help)(=.*)?", re.DOTALL
)
"""Options of `launch`; after the script, they would be passed to the script."""
MOST_WORKERS = 100_000


def launch(
    script: Annotated[Path, typer.Argument(help="Python script. Its arguments follow it.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers", "-n", help="Number of workers, or several as 1,2,4.", metavar="N", show_default="1"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="First seed of a measured script.")] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="Runs of a measured script for each number of workers.", metavar="N")
    ] = 1,
    strategy: StrategyOption = DEFAULT,
    device: DeviceOption = "auto",
    cpus_per_worker: Annotated[
        int | None, typer.Option(min=1, help="Cores of each worker.", metavar="N", show_default="1 on CPUs")
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the logs of all ranks but 0.", metavar="DIR", show_default="a temporary folder"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs of a measured script.", metavar="DIR", show_default="studies/SCRIPT"
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Train with your own PyTorch or Keras script on several workers.

    A Keras script needs three more lines:

    \b
      import scalestudy
      workers = scalestudy.workers()               # right after the imports
      history = workers.fit(model, x, y, ...)      # was: model.fit(x, y, ...)
      if workers.is_chief: model.save("m.keras")   # around work for one process only

    A PyTorch script for torchrun runs as it is, with torchrun's environment variables. Three more lines
    measure it for report, advise and compare:

    \b
      workers = scalestudy.workers()
      for epoch in workers.epochs(10, model):      # was: for epoch in range(10)
          ...; workers.count(len(x), loss)         # after each step
          workers.quality("accuracy", right, of)   # after the evaluation

    Options of launch come before the script. Rank 0 writes to this terminal, the other ranks to logs. If a
    rank fails, all are stopped, and its last lines are shown. See docs/reference/scripts.md.
    """  # noqa: D301 (click keeps lines after a backspace as they are)
    from scalestudy.cluster.resolve import resolve
    from scalestudy.features.scripts.launch import is_own_loop, run_rank, run_sweep, start_lines, sweep_of

    keys = {"device": device} | ({} if cpus_per_worker is None else {"cpus_per_worker": cpus_per_worker})
    if logs is not None:
        refuse_inside_study(logs)
    words = script_arguments(script, arguments or [])
    place = resolve(os.environ)
    if place.size > 1 and not dry_run and is_own_loop(script, strategy):
        if workers is not None or seeds > 1 or logs is not None:
            raise UserError(
                f"no -n, --seeds or --logs, since {place.source} has started {place.size} processes",
                "one of them",
                "Leave them out: each of those processes is a worker, and --seed gives the seed.",
            )
        run_rank(script, words, place, strategy=strategy, device=device, seed=seed, out=out)
    counts = worker_counts(workers or "1")
    planned = sweep_of(
        script, words, counts, range(seed, seed + seeds), strategy=strategy, launch=keys, out=out
    )
    if dry_run:
        for line in [line for one in planned for line in start_lines(one)]:
            console().print(line, markup=False, soft_wrap=True)
    else:
        run_sweep(planned, logs, lambda text: err().print(text, markup=False, soft_wrap=True))


def worker_counts(text: str) -> list[int]:
    """Parse numbers of workers such as "4" or "1,2,4".

    Raises:
        UserError: A word is not a number of workers.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and 0 < int(word) <= MOST_WORKERS for word in words):
        raise UserError("numbers of workers after -n, such as 4 or 1,2,4", repr(text), "Correct it.")
    return list(dict.fromkeys(map(int, words)))


def script_arguments(script: Path, words: list[str]) -> list[str]:
    """Return the script's own arguments, without a leading `--`.

    Raises:
        UserError: They contain an option of launch, which could be meant for either.
    """
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
