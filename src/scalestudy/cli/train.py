"""`scalestudy train`: one run, without a study file."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.console import out
from scalestudy.cli.options import ReportOption, StrategyOption, WorkersOption
from scalestudy.plugins.strategies import DEFAULT


def train(
    context: typer.Context,
    task: Annotated[
        str,
        typer.Option(help='Task: "unet", "torch_unet", "keras:MODEL", …, or a Python file.'),
    ] = "unet",
    data: Annotated[
        str | None,
        typer.Option(
            help="Data: a folder, an .npz file, indents, indents:COUNT or digits.",
            show_default="the task's own",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="Engine: tensorflow, torch, …", show_default="the strategy's"),
    ] = None,
    strategy: StrategyOption = DEFAULT,
    workers: WorkersOption = 1,
    seed: Annotated[int, typer.Option(help="Seed of initial weights, order of samples and dropout.")] = 0,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Results folder.", metavar="DIR", show_default="studies/TASK-STRATEGY-wWORKERS"
        ),
    ] = None,
    report: ReportOption = True,
    keys: Annotated[
        bool, typer.Option("--keys", help="List the keys that are options too, and exit.")
    ] = False,
) -> None:
    """Train one point, without a study file.

    Every key of a study file is an option too, for example
    --epochs 5 --batch-size 8 --xla --image-size 256 256. --keys lists them.
    """
    from scalestudy.app.one_point import one_point_study, option_values, options
    from scalestudy.app.survey import Request
    from scalestudy.cli.run import conducted
    from scalestudy.config.template import study_toml

    if keys:
        for line in options():
            out().print(line, markup=False)
        return
    settings = option_values(context.args)
    sweep = {"strategy": strategy, "workers": workers, "seed": seed}
    sweep |= {"engine": engine} if engine else {}
    study = one_point_study(task, data, sweep, settings)
    target = folder or Path("studies") / study.name
    command = shlex.join(["scalestudy", *sys.argv[1:]])
    request = Request(study, study_toml(study), Path(), target)
    raise typer.Exit(conducted(request, command, report=report))
