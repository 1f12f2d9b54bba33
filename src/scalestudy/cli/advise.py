"""`scalestudy advise`: which strategy and how many workers to ask for."""

from typing import Annotated, Literal

import typer

from scalestudy.cli.study_argument import StudyArgument, open_study

EPILOG = """\b
Examples:
  What the report advises, with what larger counts would do:
    scalestudy advise study.toml
  The cheapest training that is done in two hours, of the newest study here:
    scalestudy advise --deadline 2h
"""


def advise(
    study: StudyArgument = None,
    efficiency: Annotated[
        float, typer.Option(help="Least cost efficiency: cost of the reference over cost of the choice.")
    ] = 0.7,
    deadline: Annotated[
        str | None,
        typer.Option(help='The cheapest training that is done in this time: "2h", "90min".', metavar="TIME"),
    ] = None,
    energy: Annotated[bool, typer.Option("--energy", help="The least energy, of what was measured.")] = False,
    bill: Annotated[
        Literal["worker", "gpu", "core", "node"] | None,
        typer.Option(help="What the site bills; by its profile when absent."),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(help="Most workers to think of; 4 times the largest count measured when absent."),
    ] = None,
    target_quality: Annotated[
        float | None,
        typer.Option(help="Quality whose time is told; one worker's less the margin when absent."),
    ] = None,
    format: Annotated[str, typer.Option(help="table or json.", metavar="FORMAT")] = "table",
) -> None:
    """Say which strategy and how many workers to ask for: what the report advises, or for a goal of yours."""
    from scalestudy.analysis.read import read_study
    from scalestudy.cli.console import out
    from scalestudy.cli.formats import check_format
    from scalestudy.features.advise.goals import Goal, answer
    from scalestudy.features.advise.page import advise_document, advise_json
    from scalestudy.report.as_terminal import terminal
    from scalestudy.util.errors import UserError
    from scalestudy.util.units import seconds_of

    check_format(format)
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
    findings = read_study(open_study(study), efficiency, bill=bill, target_quality=target_quality)
    found = answer(findings, goal)
    if format == "json":
        print(advise_json(findings, found), end="")
        return
    console = out()
    print(terminal(advise_document(findings, found), console.width, console.is_terminal), end="")
