"""`scalestudy recipe`: a learning rate and a warm-up for each number of workers."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.console import out, show_document
from scalestudy.cli.launch import worker_counts
from scalestudy.cli.options import AtMostOption, DryRunOption, ResultsOption, StudyFile


def recipe(
    study: StudyFile = Path("study.toml"),
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers",
            "-n",
            help="Numbers of workers; one worker is always searched, too.",
            metavar="N,N,...",
            show_default="those of the study",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(help="Trials for each number of workers, 2 or more.", min=2, max=1000, metavar="N")
    ] = 12,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Strategy of the trials.", show_default="virtual, which computes all workers on one device"
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
    from scalestudy.app.survey import request_of
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.recipe.page import recipe_file, recipes_document, rows_by_workers
    from scalestudy.features.recipe.run import plan, search_recipe
    from scalestudy.launch.base import Options
    from scalestudy.store.study_folder import default_folder
    from scalestudy.util.files import write_atomically

    asked = request_of(study, folder)
    request = replace(asked, target=folder or default_folder(study, f"{asked.study.name}-recipe"))
    counts = asked.study.sweep.workers if workers is None else worker_counts(workers)
    planned = plan(request, counts, trials, strategy)
    terminal = Terminal()
    if dry_run:
        out().print(
            f"{planned.trials} trials with {planned.strategy} for each of"
            f" {', '.join(map(str, planned.workers))} workers: the time of about"
            f" {planned.trainings:.3g} trainings for each.",
            markup=False,
        )
        return
    recipes = [search_recipe(planned, n, terminal, Options(at_most=at_most)) for n in planned.workers]
    rows = rows_by_workers(planned, recipes)
    show_document(recipes_document(planned, recipes, rows), "table", None, {})
    for found in recipes:
        if found.trial is not None:
            file = study.with_name(f"{study.stem}-recipe-w{found.workers}.toml")
            write_atomically(file, recipe_file(planned, found, found.trial, rows[found.workers]))
            out().print(f"Wrote {file}", markup=False)
