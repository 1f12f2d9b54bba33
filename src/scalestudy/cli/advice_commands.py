"""Commands that advise: `advise`, `diagnose`, `proposal` and `recipe`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from scalestudy.cli.options import (
    RECORDED_EPOCHS,
    AnswerOption,
    AtMostOption,
    BetterOption,
    ColumnOption,
    DryRunOption,
    EnvironmentOption,
    EpochsOption,
    FileOption,
    ForceOption,
    FromOption,
    FromStrategyOption,
    FromWorkersOption,
    MarginOption,
    MetricOption,
    PointOption,
    ResultsOption,
    RowOption,
    SamplesOption,
    StudyArgument,
    StudyFile,
    format_option,
    open_study,
    option,
    plan_given,
    seconds_given,
    worker_counts,
)
from scalestudy.cli.printing import err, out, show_document
from scalestudy.util.errors import UserError
from scalestudy.util.targets import refuse_target
from scalestudy.util.text import count_noun


def _share(text: str | float) -> float:
    number = str(text).strip()
    try:
        if number.endswith("%"):
            return float(number[:-1]) / 100
        return float(number)
    except ValueError:
        wrong = f"{text!r} is not a share such as 0.7 or 70%"
        raise typer.BadParameter(wrong) from None


def advise_command(
    study: StudyArgument = None,
    efficiency: Annotated[
        float | None,
        option(
            "Minimum cost efficiency, as 0.7 or 70%: cost of the reference over cost of the choice.",
            "SHARE",
            "that of [plan], else 0.7",
            parser=_share,
        ),
    ] = None,
    epochs: EpochsOption = None,
    samples: SamplesOption = None,
    deadline: Annotated[
        str | None,
        option('Find the cheapest training within this time: "2h", "90min".', "TIME"),
    ] = None,
    bill: Annotated[
        Literal["worker", "gpu", "core", "node"] | None,
        option("Unit that the site bills.", default="the site profile's, else worker"),
    ] = None,
    most: Annotated[
        int | None, option("With --deadline: maximum number of workers.", "N")
    ] = None,
    source: FromOption = None,
    column: ColumnOption = None,
    row: RowOption = None,
    strategy: FromStrategyOption = None,
    workers: FromWorkersOption = None,
    metric: MetricOption = None,
    better: BetterOption = None,
    quality_margin: MarginOption = None,
    form: AnswerOption = "table",
) -> None:
    """Recommend a strategy and a number of workers: as the report does, or for your own goal.

    With --from, numbers measured elsewhere are judged instead of a study.
    """
    # Imported here, as in every command: the analysis alone takes a second, which `--help` need not wait for.
    from scalestudy.analysis.decision import Criteria
    from scalestudy.analysis.findings import read_study
    from scalestudy.config.settings import EFFICIENCY_TARGET
    from scalestudy.features.advise import Goal, advise_document, advise_json, answer

    # Also nan, which is neither above 0 nor below.
    if efficiency is not None and not 0 < efficiency <= 1:
        raise UserError(
            "an efficiency above 0 and at most 1",
            f"{efficiency:g}",
            "Write 0.7 for 70 %.",
        )
    if most is not None and most < 1:
        raise UserError("--most of 1 worker or more", f"{most}", "Correct it.")
    if most is not None and deadline is None:
        raise UserError(
            "--deadline with --most",
            "--most alone",
            "Add --deadline, or leave out --most.",
        )
    goal = Goal(seconds_given(deadline, "--deadline"), most)
    options = (column or (), strategy, workers, metric, better, quality_margin, row)
    if source and (epochs or samples):
        raise UserError(
            RECORDED_EPOCHS,
            "numbers without them",
            "Leave the option out.",
        )
    if source and study is not None:
        raise UserError("a study or --from FILE", "both", "Leave one out.")
    if any(options) and not source:
        raise UserError(
            "--from FILE",
            "an option that needs it",
            "Add --from, or leave out that option.",
        )
    if source:
        from scalestudy.features.imported.columns import options_of
        from scalestudy.features.imported.gather import import_findings

        criteria = Criteria(efficiency or EFFICIENCY_TARGET, bill or "worker")
        findings = import_findings(source, options_of(*options), criteria=criteria)
    else:
        opened = open_study(study)
        plan = plan_given(
            study,
            opened,
            epochs=epochs,
            samples=samples,
            efficiency=efficiency,
        )
        findings = read_study(opened, plan=plan, bill=bill)
    result = answer(findings, goal)
    # A function, which is called only if its format is chosen.
    programs = {"json": partial(advise_json, findings, result)}
    show_document(lambda: advise_document(findings, result), form, None, programs)


def diagnose_command(
    study: StudyArgument = None,
    point: PointOption = None,
    rounds: Annotated[
        int, option("Rounds; each measures every variant once.", "N", min=1)
    ] = 3,
    task: Annotated[
        Path | None,
        option(
            "Task file of the point, whose code then runs.",
            "FILE",
            "that of the study, if you have trained with it",
            name="--task",
        ),
    ] = None,
    environment: EnvironmentOption = None,
    form: AnswerOption = "table",
) -> None:
    """Split a point's lost efficiency into input, exchange, imbalance, contention and fixed cost.

    Runs short ablations of the point on this machine, each without one part of a step, compares them, and
    lists what to change, the largest gain first. Later reports include the last diagnosis. Without --point it
    takes the next larger point after the advised one, else the largest measured.
    """
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.features.diagnose.diagnosed_point import plan_diagnosis
    from scalestudy.features.diagnose.diagnosis_section import render, stored_diagnosis
    from scalestudy.features.diagnose.rounds import diagnose
    from scalestudy.store.permission import Permission

    terminal, folder = Terminal(), open_study(study)
    planned = plan_diagnosis(folder, point, Permission(task, environment))
    why = ""
    if planned.why:
        why = f", {planned.why}"
    terminal.note(f"Diagnosing {planned.point.name}{why}.")
    shared = planned.point.oversubscribed
    if shared:
        terminal.note(f"Oversubscribed: {shared}; most of the loss comes from that.")
    diagnosis = diagnose(planned, terminal, rounds=rounds)
    stored = stored_diagnosis(diagnosis, folder, planned.findings.rows)
    print(render(stored, form, width=out().width), end="")


def proposal_command(
    study: StudyArgument = None,
    panel: Annotated[
        str | None, option("Review panel: a name from --list, or a panel file.", "NAME")
    ] = None,
    form: Annotated[str | None, format_option("markdown", "html")] = None,
    file: FileOption = None,
    list_panels: Annotated[
        bool, option("List the review panels.", name="--list")
    ] = False,
    runs: Annotated[
        int | None,
        option(
            "Different trainings to request.",
            "N",
            "those of [plan], else 1",
            min=1,
        ),
    ] = None,
    seeds: Annotated[
        int | None, option("Repeats of each.", "K", "those of the study", min=1)
    ] = None,
    strategy: Annotated[
        str | None, option("Strategy to request.", "NAME", "the advised one")
    ] = None,
    workers: Annotated[
        int | None, option("Workers of each.", "N", "the advised number", min=1)
    ] = None,
    epochs: EpochsOption = None,
    samples: SamplesOption = None,
    charge: Annotated[
        float | None, option("Units charged per hour.", "X", "the panel's", min=1e-09)
    ] = None,
    unit: Annotated[
        str | None, option('Name of the unit, such as "GPU-h".', "UNIT", "the panel's")
    ] = None,
    reserve: Annotated[
        float, option("Share to add as a reserve: 0.1 is a tenth.", "SHARE", min=0.0)
    ] = 0.0,
    force: ForceOption = False,
) -> None:
    """Write the page that a review panel asks for: text, table, figure and the computed request.

    The page holds only what the study supports; its last part lists what else to run.
    """
    from scalestudy.features.proposal.proposal_page import propose
    from scalestudy.features.proposal.subject import RequestOptions
    from scalestudy.report.write_document import FORMS, form_by_ending

    if list_panels:
        _print_panels()
        return
    if panel is None:
        raise UserError(
            "--panel NAME",
            "none",
            "Choose one: scalestudy proposal --list",
        )
    refuse_target(file, [study], force=force)
    form = form_by_ending(form, file, FORMS, "markdown")
    opened = open_study(study)
    plan = plan_given(
        study,
        opened,
        epochs=epochs,
        samples=samples,
        runs=runs,
    )
    options = RequestOptions(plan.runs, seeds, strategy, workers, charge, unit, reserve)
    page = propose(opened, panel, options, plan)
    if page.gaps:
        items = count_noun(len(page.gaps), "item")
        note = f"Not on the page: {items} that {panel} asks for. See its last part."
        err().print(note, markup=False)
    show_document(lambda: page.document, form, file, {})


def _print_panels() -> None:
    from scalestudy.features.proposal.panel import find_panel, shipped_panels

    for name in shipped_panels():
        panel = find_panel(name)
        read = max(source.read for source in panel.sources)
        out().print(
            f"{name:<12}  {panel.panel}: {panel.title} ({panel.unit}; read {read})",
            markup=False,
        )


def recipe_command(
    study: StudyFile = Path("study.toml"),
    workers: Annotated[
        str | None,
        option(
            "Numbers of workers; one worker is always searched, too.",
            "N,N,...",
            "those of the study",
            name=("--workers", "-n"),
        ),
    ] = None,
    trials: Annotated[
        int,
        option("Trials for each number of workers, 2 or more.", "N", min=2, max=1000),
    ] = 12,
    strategy: Annotated[
        str | None,
        option(
            "Strategy of the trials.",
            default="virtual, which computes all workers on one device",
        ),
    ] = None,
    settle: Annotated[
        int | None,
        option(
            "Train the chosen settings on up to this many new seeds, until it is settled whether each is as"
            " good as on one worker. Without it, the table says how many that takes.",
            "SEEDS",
            min=3,
            max=1000,
        ),
    ] = None,
    folder: ResultsOption = None,
    at_most: AtMostOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Search a learning rate and a warm-up for each number of workers, and write a study file for each.

    Every number of workers gets as many trials: each rule for large batches, with and without warm-up, then
    rates and warm-ups around the best. The best of short trainings are trained for longer, at last on three
    seeds. Their best is trained on three new seeds: only these results are reported. Trials are ordinary
    runs, in studies/NAME-recipe; the files, such as STUDY-recipe-w8.toml, are written beside STUDY. After
    Ctrl-C, run it again to continue.
    """
    from scalestudy.app.plan import request_of
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.features.recipe.page import recipe_file, recipes_document
    from scalestudy.features.recipe.run_trials import plan_recipe, search_recipe
    from scalestudy.features.recipe.settle import settle as settle_recipes
    from scalestudy.features.recipe.verdicts import rows_by_workers
    from scalestudy.launch.launcher import Options
    from scalestudy.store.study_folder import default_folder
    from scalestudy.util.targets import write_named

    asked = request_of(study, folder)
    # Not among the study's own results: trials have other settings.
    request = replace(
        asked,
        target=folder or default_folder(study, f"{asked.study.name}-recipe"),
    )
    counts: Sequence[int] = asked.study.sweep.workers
    if workers is not None:
        counts = worker_counts(workers)
    planned = plan_recipe(request, counts, trials, strategy)
    terminal = Terminal()
    if dry_run:
        out().print(
            f"{planned.trials} trials with {planned.strategy} for each of"
            f" {', '.join(map(str, planned.workers))} workers: the time of about"
            f" {planned.trainings:.3g} trainings for each.",
            markup=False,
        )
        return
    options = Options(at_most=at_most)
    recipes = [search_recipe(planned, n, terminal, options) for n in planned.workers]
    if settle is not None:
        recipes = settle_recipes(planned, recipes, settle, terminal, options)
    rows = rows_by_workers(planned, recipes)
    show_document(lambda: recipes_document(planned, recipes, rows), "table", None, {})
    for found in recipes:
        if found.trial is not None:
            file = study.with_name(f"{study.stem}-recipe-w{found.workers}.toml")
            text = recipe_file(planned, found, found.trial, rows[found.workers])
            write_named(file, text)
            out().print(f"Wrote {file}", markup=False)
