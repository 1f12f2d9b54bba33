"""`scalestudy launch`: a Keras script of one's own, on several workers."""

import re
from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.options import DeviceOption, DryRunOption, StrategyOption, WorkersOption
from scalestudy.study.strategies import DEFAULT

OPTION = re.compile(r"-n\d*|--(workers|strategy|device|cpus-per-worker|logs|dry-run|help)(=.*)?", re.DOTALL)
"""Options of `launch`, which after the script would be the script's."""


def launch(
    script: Annotated[Path, typer.Argument(help="Python script; what follows it are its own arguments.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    workers: WorkersOption = 1,
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
    dry_run: DryRunOption = False,
) -> None:
    """Train with a Keras script of your own on several workers, after three changed lines.

    \b
      import scalestudy
      workers = scalestudy.workers()               # right after the imports
      history = workers.fit(model, x, y, ...)      # was: model.fit(x, y, ...)
      if workers.is_chief: model.save("m.keras")   # around what is to happen once

    Options of launch stand before the script. Rank 0 has this terminal; the output of the others goes to
    their logs. When a rank fails all are ended, and it is named with its last lines.
    docs/existing-scripts.md says what is exact, and what not.
    """  # noqa: D301 (click keeps lines after a backspace as they are)
    from scalestudy.cli.console import err, out
    from scalestudy.features.scripts.launch import run_script, script_of, start_lines
    from scalestudy.study.targets import refuse_inside_study

    keys = {"device": device} | ({} if cpus_per_worker is None else {"cpus_per_worker": cpus_per_worker})
    if logs is not None:
        refuse_inside_study(logs)
    words = script_arguments(script, arguments or [])
    planned = script_of(script, words, strategy=strategy, workers=workers, launch=keys)
    if dry_run:
        for line in start_lines(planned):
            out().print(line, markup=False, soft_wrap=True)
        return
    run_script(planned, logs, lambda text: err().print(text, markup=False, soft_wrap=True))


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
