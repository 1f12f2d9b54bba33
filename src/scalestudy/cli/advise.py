"""`scalestudy advise`: which strategy and how many workers to ask for."""

from typing import Annotated, Literal

import typer

from scalestudy.cli.options import AnswerOption, StudyArgument, open_study


def _share(text: str | float) -> float:
    number = str(text).strip()
    try:
        return float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no share as 0.7 or 70%") from None


def advise(
    study: StudyArgument = None,
    efficiency: Annotated[
        float,
        typer.Option(
            help="Least cost efficiency: cost of the reference over cost of the choice; 0.7, or 70%.",
            parser=_share,
            metavar="SHARE",
        ),
    ] = 0.7,
    deadline: Annotated[
        str | None,
        typer.Option(help='The cheapest training that is done in this time: "2h", "90min".', metavar="TIME"),
    ] = None,
    energy: Annotated[bool, typer.Option("--energy", help="The least energy, of what was measured.")] = False,
    network: Annotated[
        list[str] | None,
        typer.Option(
            help='Predict larger runs over this network: "100Gbit,2us,per_node=4", a site profile that'
            " states it, or a JSON file of `scalestudy check`. Repeatable.",
            metavar="NETWORK",
        ),
    ] = None,
    bill: Annotated[
        Literal["worker", "gpu", "core", "node"] | None,
        typer.Option(help="What the site bills; by its profile when absent."),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            help="Most workers to think of. When absent 4 times the largest count measured; with --network "
            "4,096, or the global batch where the study fixes it.",
            metavar="N",
        ),
    ] = None,
    target_quality: Annotated[
        float | None,
        typer.Option(help="Quality whose time is told; one worker's less the margin when absent."),
    ] = None,
    form: AnswerOption = "table",
) -> None:
    """Say which strategy and how many workers to ask for: what the report advises, or for a goal of yours."""
    from scalestudy.analysis.read import read_study
    from scalestudy.cli.console import show_document
    from scalestudy.features.advise.goals import Goal, answer
    from scalestudy.features.advise.larger_runs import read_larger_runs
    from scalestudy.features.advise.page import advise_document, advise_json
    from scalestudy.util.errors import UserError
    from scalestudy.util.units import seconds_of

    if deadline is not None and energy:
        raise UserError("one goal", "--deadline and --energy", "Give one of them.")
    if not 0 < efficiency <= 1:
        raise UserError("an efficiency above 0 and up to 1", f"{efficiency:g}", "Write 0.7 for 70 %.")
    if most is not None and most < 1:
        raise UserError("--most of 1 worker or more", f"{most}", "Correct it.")
    goal = Goal("energy" if energy else "efficiency", most=most)
    if deadline is not None:
        try:
            goal = Goal("deadline", seconds_of(deadline), most)
        except ValueError as error:
            raise UserError(str(error), repr(deadline), "Correct --deadline.") from None
    folder = open_study(study)
    findings = read_study(folder, efficiency, bill=bill, target_quality=target_quality)
    expected, missing = read_larger_runs(folder, findings.runs, network, most) if network else ((), ())
    result = answer(findings, goal, expected, missing)
    document = advise_document(findings, result)
    show_document(document, form, None, {"json": lambda: advise_json(findings, result)})
