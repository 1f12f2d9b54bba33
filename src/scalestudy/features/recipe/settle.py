"""Train the chosen recipes on more seeds until it is settled whether each is as good as that of one worker.

Three new seeds choose nothing and show little: a margin of 0.002 under a spread of 0.003 takes some thirty.
How many it takes follows from the spread that was seen (`analysis.sequential.seeds_needed`). Each time more
seeds are added, the verdict is another look, and its interval is at the level that pays for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

from scalestudy.analysis.study_table import Row
from scalestudy.app.follow import Listener
from scalestudy.features.recipe.run_trials import RecipePlan, TunedRate, train_choice
from scalestudy.features.recipe.verdicts import rows_by_workers
from scalestudy.launch.launcher import Options

GROWTH = 1.5
"""How many times as many seeds the next look has at least: each look costs a part of the accepted error."""


def seeds_wanted(rows: Mapping[int, Row], most: int) -> dict[int, int]:
    """Seeds that each number of workers should have next.

    Args:
        rows: Verdicts by number of workers, on the new seeds.
        most: Largest number of seeds.

    Returns:
        Numbers of seeds by number of workers, without those that have as many or are settled. A row is
        compared within seeds, so that its reference gets the same ones.
    """
    wanted: dict[int, int] = {}
    for workers, row in rows.items():
        verdict = row.verdict
        if verdict.kind != "unclear":
            continue
        if verdict.needed is None or verdict.reference is None:
            continue
        seeds = max(verdict.needed, ceil(GROWTH * row.runs))
        seeds = min(seeds, most)
        for number in (workers, verdict.reference.workers):
            if seeds > rows[number].runs:
                wanted[number] = max(seeds, wanted.get(number, 0))
    return wanted


def settle(
    planned: RecipePlan,
    recipes: Sequence[TunedRate],
    most: int,
    listener: Listener | None = None,
    options: Options | None = None,
) -> list[TunedRate]:
    """Train recipes on more seeds until every verdict stands, or there are `most` seeds.

    Raises:
        RunError: A training failed.
    """
    settled = list(recipes)
    # Each round of seeds is another look, so what is wanted next is known only after it.
    while True:
        judged = rows_by_workers(planned, settled)
        wanted = seeds_wanted(judged, most)
        if not wanted:
            return settled
        for place, recipe in enumerate(settled):
            if recipe.workers in wanted and recipe.trial is not None:
                runs = train_choice(
                    planned,
                    recipe.workers,
                    recipe.trial,
                    wanted[recipe.workers],
                    listener,
                    options,
                )
                settled[place] = replace(recipe, runs=runs)
