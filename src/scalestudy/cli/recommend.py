"""`scalestudy recommend`: how many workers to ask for."""

from pathlib import Path
from typing import Annotated

import typer


def recommend(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    efficiency: Annotated[
        float | None,
        typer.Option(help="The most workers that keep this efficiency (0.7 when no goal is given)."),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            help='The least cost of a job that is done in this time: "2h", "90min".', metavar="TIME"
        ),
    ] = None,
    energy: Annotated[bool, typer.Option("--energy", help="The least energy of a training.")] = False,
    charge: Annotated[float, typer.Option(help="What a worker-hour costs.")] = 1.0,
    most: Annotated[
        int | None,
        typer.Option(help="Most workers to think of; 4 times the largest count measured when absent."),
    ] = None,
    format: Annotated[str, typer.Option(help="table or json.", metavar="FORMAT")] = "table",
) -> None:
    """Say how many workers to ask for: by efficiency, by a deadline and cost, or by energy.

    Counts between and beyond those measured are predicted by a scaling model.
    """
    from scalestudy.analysis.scaling.recommend import Goal
    from scalestudy.cli.console import out
    from scalestudy.cli.formats import check_format
    from scalestudy.conduct.recommend import recommended
    from scalestudy.errors import UserError
    from scalestudy.report.as_terminal import terminal
    from scalestudy.report.recommended import recommended_document, recommended_json
    from scalestudy.units import seconds_of

    check_format(format)
    if sum((efficiency is not None, deadline is not None, energy)) > 1:
        raise UserError("one goal", "several of --efficiency, --deadline and --energy", "Give one of them.")
    if efficiency is not None and not 0 < efficiency <= 1:
        raise UserError("an efficiency above 0 and up to 1", f"{efficiency:g}", "Write 0.7 for 70 %.")
    if charge <= 0 or (most is not None and most < 1):
        raise UserError("a charge above 0 and 1 worker or more", f"{charge:g} and {most}", "Correct it.")
    goal = Goal("efficiency", 0.7 if efficiency is None else efficiency, charge, most)
    if energy:
        goal = Goal("energy", 0.0, charge, most)
    elif deadline is not None:
        try:
            goal = Goal("deadline", seconds_of(deadline), charge, most)
        except ValueError as error:
            raise UserError(str(error), repr(deadline), "Correct --deadline.") from None
    name, found = recommended(folder, goal)
    if format == "json":
        print(recommended_json(name, found), end="")
        return
    console = out()
    print(terminal(recommended_document(name, found), console.width, console.is_terminal), end="")
