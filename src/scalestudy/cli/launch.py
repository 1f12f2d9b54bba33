"""`scalestudy launch`: a script of one's own, on several workers."""

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.options import DeviceOption, DryRunOption, StrategyOption
from scalestudy.study.strategies import DEFAULT

OPTION = re.compile(
    r"-n\d*|--(workers|seeds?|strategy|device|cpus-per-worker|logs|out|dry-run|help)(=.*)?", re.DOTALL
)
"""Options of `launch`, which after the script would be the script's."""
MOST_WORKERS = 100_000


def launch(
    script: Annotated[Path, typer.Argument(help="Python script; what follows it are its own arguments.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers", "-n", help="Number of workers, 1 when absent; several as 1,2,4.", metavar="N"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of a measured script, or the first of them.")] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="Runs of a measured script at each number of workers.", metavar="N")
    ] = 1,
    strategy: StrategyOption = DEFAULT,
    device: DeviceOption = "auto",
    cpus_per_worker: Annotated[
        int | None, typer.Option(min=1, help="Cores of each worker; 1 on CPUs when absent.")
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the logs of all ranks but 0; among temporary files when absent.", metavar="DIR"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of a measured script's runs; studies/SCRIPT when absent.", metavar="DIR"),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Train with a script of your own on several workers: a PyTorch script as it is, or one of Keras.

    A Keras script changes in three lines:

    \b
      import scalestudy
      workers = scalestudy.workers()               # right after the imports
      history = workers.fit(model, x, y, ...)      # was: model.fit(x, y, ...)
      if workers.is_chief: model.save("m.keras")   # around what is to happen once

    A script with a training loop for torchrun gets torchrun's variables. Three lines measure it, for report,
    advise and compare:

    \b
      workers = scalestudy.workers()
      for epoch in workers.epochs(10, model):      # was: for epoch in range(10)
          ...; workers.count(len(x), loss)         # after each step
          workers.quality("accuracy", right, of)   # after the evaluation

    Options of launch stand before the script. Rank 0 has this terminal; the output of the others goes to
    their logs. When a rank fails all are ended, and it is named with its last lines.
    docs/reference/scripts.md says what is exact, and what not.
    """  # noqa: D301 (click keeps lines after a backspace as they are)
    from scalestudy.cli import console
    from scalestudy.cluster.resolve import resolve
    from scalestudy.features.scripts.launch import is_own_loop, run_rank, run_sweep, start_lines, sweep_of
    from scalestudy.study.targets import refuse_inside_study
    from scalestudy.util.errors import UserError

    keys = {"device": device} | ({} if cpus_per_worker is None else {"cpus_per_worker": cpus_per_worker})
    if logs is not None:
        refuse_inside_study(logs)
    words = script_arguments(script, arguments or [])
    place = resolve(os.environ)
    if place.size > 1 and not dry_run and is_own_loop(script, strategy):
        if workers is not None or seeds > 1 or logs is not None:
            raise UserError(
                f"no -n, --seeds and --logs where {place.source} has started {place.size} processes",
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
            console.out().print(line, markup=False, soft_wrap=True)
    else:
        run_sweep(planned, logs, lambda text: console.err().print(text, markup=False, soft_wrap=True))


def worker_counts(text: str) -> list[int]:
    """Numbers of workers as they are given: "4", "1,2,4".

    Raises:
        UserError: If one is none.
    """
    from scalestudy.util.errors import UserError

    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and 0 < int(word) <= MOST_WORKERS for word in words):
        raise UserError("numbers of workers after -n, as 4 or 1,2,4", repr(text), "Correct it.")
    return list(dict.fromkeys(map(int, words)))


def script_arguments(script: Path, words: list[str]) -> list[str]:
    """The script's own arguments: what follows it, without a first `--`.

    Raises:
        UserError: If an option of launch stands among them, which nobody can tell from one of the script's.
    """
    from scalestudy.util.errors import UserError

    if words[:1] == ["--"]:
        return words[1:]
    misplaced = [word for word in words if OPTION.fullmatch(word)]
    if misplaced:
        raise UserError(
            f"options of launch before {script}",
            f"{', '.join(misplaced)} after it",
            f"Write `scalestudy launch OPTIONS {script} …`; what is meant for the script goes after --: "
            f"`{script} -- {' '.join(words)}`.",
        )
    return words
