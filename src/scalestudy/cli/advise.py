"""`scalestudy advise`: which strategy and how many workers to ask for."""

from typing import Annotated, Literal

import typer

from scalestudy.cli.console import out
from scalestudy.cli.options import AnswerOption, StudyArgument, open_study
from scalestudy.util.errors import UserError


def _share(text: str | float) -> float:
    number = str(text).strip()
    try:
        return float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a share such as 0.7 or 70%") from None


def advise(
    study: StudyArgument = None,
    efficiency: Annotated[
        float,
        typer.Option(
            help="Minimum cost efficiency, as 0.7 or 70%: cost of the reference over cost of the choice.",
            parser=_share,
            metavar="SHARE",
        ),
    ] = 0.7,
    deadline: Annotated[
        str | None,
        typer.Option(help='Find the cheapest training within this time: "2h", "90min".', metavar="TIME"),
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(
            help='Predict larger runs over this network: "100Gbit,2us,per_node=4", or a JSON file of'
            " `scalestudy check`. Repeatable.",
            metavar="NETWORK",
        ),
    ] = None,
    bill: Annotated[
        Literal["worker", "gpu", "core", "node"] | None,
        typer.Option(help="Unit that the site bills.", show_default="the site profile's, else worker"),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of workers to consider.",
            metavar="N",
            show_default="4 times the largest measured, or with --network 4,096 or a fixed global batch",
        ),
    ] = None,
    target_quality: Annotated[
        float | None,
        typer.Option(
            help="Quality to which the time is reported.",
            metavar="Q",
            show_default="the best of one worker, less the margin",
        ),
    ] = None,
    form: AnswerOption = "table",
) -> None:
    """Recommend a strategy and a number of workers: as the report does, or for your own goal."""
    from scalestudy.analysis.read import read_study
    from scalestudy.features.advise.goals import Goal, answer
    from scalestudy.features.advise.larger_runs import read_larger_runs
    from scalestudy.features.advise.page import advise_json, advise_text
    from scalestudy.util.units import seconds_of

    if not 0 < efficiency <= 1:
        raise UserError("an efficiency above 0 and at most 1", f"{efficiency:g}", "Write 0.7 for 70 %.")
    if most is not None and most < 1:
        raise UserError("--most of 1 worker or more", f"{most}", "Correct it.")
    try:
        goal = Goal(None if deadline is None else seconds_of(deadline), most)
    except ValueError as error:
        raise UserError(str(error), repr(deadline), "Correct --deadline.") from None
    folder = open_study(study)
    findings = read_study(folder, efficiency, bill=bill, target_quality=target_quality)
    expected, missing = read_larger_runs(folder, findings.runs, network, most) if network else ((), ())
    result = answer(findings, goal, expected, missing)
    console = out()
    text = advise_text(findings, result, console.width, console.is_terminal)
    print(advise_json(findings, result) if form == "json" else text, end="")
