"""A search whose trials are ordinary runs; only training is replaced by a made-up response surface."""

import math
import random

import pytest

from scalestudy.app.plan import request_of
from scalestudy.cli import app
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study, parse_study
from scalestudy.features.recipe.page import recipe_file, recipes_document
from scalestudy.features.recipe.run_trials import plan_recipe, search_recipe
from scalestudy.features.recipe.search import RUNGS
from scalestudy.features.recipe.settle import settle
from scalestudy.features.recipe.verdicts import rows_by_workers, seconds_to_settle
from scalestudy.launch.launcher import Moved
from scalestudy.report.as_terminal import terminal
from scalestudy.store.records import Failure
from scalestudy.store.study_folder import StudyFolder
from scalestudy.training.rates import peak_rate
from scalestudy.util.errors import RunError, UserError
from synthetic_result import epoch_of, result_of

TEXT = """task = "cnn"
[data]
source = "digits"
[train]
optimizer = "sgd"
learning_rate = 0.01
learning_rate_scaling = "none"
epochs = 8
[sweep]
workers = [1, 8]
seed = [5]
"""


class Surface:
    """Writes results: the best rate is 0.02 on one worker and 0.06 on eight, above which rates diverge."""

    def __init__(self):
        self.ran = []
        self.better, self.metric = "higher", "accuracy"
        self.fail = False
        self.limit = 2.0
        self.lost = {}
        self.spread = 0.0

    def __call__(self, folder, point, *_):
        self.ran.append(point)
        run = folder.new_run(point)
        rate = peak_rate(
            point.train.learning_rate,
            point.batch_ratio,
            point.train.learning_rate_scaling,
        )
        distance = math.log2(rate / {1: 0.02, 8: 0.06, 10: 0.07}[point.workers])
        quality = (
            math.nan
            if distance > self.limit
            else 0.95 - 0.01 * distance**2 + 1e-4 * point.seed
        )
        quality -= self.lost.get(point.workers, 0.0)
        quality += self.spread * random.Random(f"{point.workers} {point.seed}").gauss(
            0, 1
        )
        run.append_epoch(epoch_of(1))
        changed = {"better": self.better, "metric": self.metric, "epochs": 1}
        record = result_of(point, quality).model_copy(update=changed)
        failure = (
            Failure(rank=0, exit_code=3, reason="out of memory", tail=[])
            if self.fail
            else None
        )
        if failure:
            run.write_failure(failure)
        else:
            run.write_result(record)
        yield Moved(point.name)


@pytest.fixture
def surface(monkeypatch):
    made = Surface()
    monkeypatch.setattr("scalestudy.launch.local.run_steps", made)
    monkeypatch.setattr(
        "scalestudy.launch.local.refuse_missing_software", lambda points: None
    )
    return made


@pytest.fixture
def planned(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "study.toml").write_text(TEXT)
    request = request_of(tmp_path / "study.toml", tmp_path / "recipe")
    return plan_recipe(request, (8,), 6, "virtual")


def test_trials_are_points_of_a_study_and_are_not_run_again(planned, surface):
    found = search_recipe(planned, 8)
    assert found.trial.peak(8) * 0.01 == pytest.approx(0.06, rel=0.5)
    assert [len(scores) for scores in found.scores] == [6, 3, 2]
    assert {point.train.epochs for point in surface.ran} == {2, 4, 8}
    assert len(surface.ran) == 6 + 3 + 2 * 3 + 3
    assert {point.seed for point in surface.ran} == set(range(5, 11))
    reported = [run.result.seed for run in found.runs]
    assert reported == [8, 9, 10]  # not those of the choice
    warmed = next(point for point in surface.ran if point.train.warmup_epochs)
    assert warmed.train.warmup_epochs == pytest.approx(0.1 * warmed.train.epochs)
    assert {point.implementation for point in surface.ran} == {"virtual"}
    again = len(surface.ran)
    repeated = search_recipe(planned, 8)
    assert (repeated.scores, repeated.trial) == (found.scores, found.trial)
    assert len(surface.ran) == again
    folder = StudyFolder.open(planned.request.target / "w8")
    assert len(folder.points()) == again
    parse_study((folder.path / "study.toml").read_text(), folder.path / "study.toml")


def test_a_recipe_is_a_study_file_with_its_reasons(planned, surface, tmp_path):
    assert planned.workers == (1, 8)
    one, eight = (search_recipe(planned, workers) for workers in planned.workers)
    file = tmp_path / "recipe-w8.toml"
    rows = rows_by_workers(planned, [one, eight])
    file.write_text(recipe_file(planned, eight, eight.trial, rows[8]))
    study = load_study(file)
    assert (study.sweep.workers, study.train.learning_rate_scaling) == (
        (8,),
        eight.trial.rule,
    )
    [point] = expand(study, gpus=0, cores=2)
    assert peak_rate(
        point.train.learning_rate, point.batch_ratio, eight.trial.rule
    ) == pytest.approx(0.01 * eight.trial.peak(8), rel=1e-5)
    reasons = [line for line in file.read_text().splitlines() if line.startswith("#")]
    assert any("untuned rules reached" in line for line in reasons)
    text = terminal(recipes_document(planned, [one, eight], rows), 160)
    assert (rows[1].verdict.kind, rows[8].verdict.kind) == ("reference", "no-worse")
    assert "Quality holds up to 8 workers." in text


def test_where_no_recipe_helps_it_is_said_and_up_to_which_count_one_does(
    planned, surface
):
    surface.lost = {10: 0.2}
    recipes = [search_recipe(planned, workers) for workers in (1, 8, 10)]
    text = terminal(
        recipes_document(planned, recipes, rows_by_workers(planned, recipes)), 160
    )
    assert "Quality holds up to 8 workers; on 10: worse by" in text
    longer = [line for line in text.splitlines() if "train.epochs = 12" in line]
    assert [line.partition(":")[0].split()[-1] for line in longer] == ["10"]


def test_trials_that_diverged_are_named_and_counted(planned, surface):
    surface.limit = 0.3
    found = search_recipe(planned, 8)
    assert ("linear", 8) in {(trial.rule, trial.peak(8)) for trial in found.diverged}
    assert all(trial.peak(8) > 6 * 2**0.3 for trial in found.diverged)
    assert all(math.isfinite(run.result.quality) for run in found.runs)
    text = terminal(
        recipes_document(planned, [found], rows_by_workers(planned, [found])), 160
    )
    assert f"{len(found.diverged)} learned nothing: linear, warm-up 10 %" in text


def test_a_trial_that_fails_stops_the_search_and_can_be_run_again(planned, surface):
    surface.fail = True
    with pytest.raises(RunError):
        search_recipe(planned, 8)
    surface.fail = False
    assert search_recipe(planned, 8).trial is not None


def test_a_metric_without_a_direction_is_refused(planned, surface):
    surface.better, surface.metric = None, "badness"
    with pytest.raises(UserError, match="higher or lower"):
        search_recipe(planned, 8)


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        (
            "seed = [5]",
            'seed = [5]\n"data.image_size" = [[8, 8], [16, 16]]',
            "data.image_size",
        ),
        ("epochs = 8", 'epochs = 8\nbatch = "global"', "global"),
    ],
)
def test_studies_without_one_answer_are_refused(tmp_path, old, new, refused):
    (tmp_path / "study.toml").write_text(TEXT.replace(old, new))
    with pytest.raises(UserError, match=refused):
        plan_recipe(request_of(tmp_path / "study.toml"), (1, 8), 6, "virtual")


def test_the_cost_is_known_before_anything_runs(planned):
    assert planned.trainings == pytest.approx(6 * RUNGS[0] + 3 * RUNGS[1] + 2 * 3 + 3)
    with pytest.raises(UserError, match="strategy"):
        plan_recipe(planned.request, (8,), 6, "torch-ddp")


def test_the_command_writes_a_study_file_for_each_number_of_workers(
    planned, surface, capsys
):
    study = planned.request.base / "study.toml"
    app(
        ["recipe", str(study), "--workers", "8", "--trials", "2", "--dry-run"],
        standalone_mode=False,
    )
    assert "2 trials with virtual for each of 1, 8 workers" in capsys.readouterr().out
    assert not surface.ran and not (study.parent / "studies").exists()
    app(["recipe", str(study), "-n", "8", "--trials", "2"], standalone_mode=False)
    assert "new seeds" in capsys.readouterr().out
    for workers in (1, 8):
        assert load_study(
            study.with_name(f"study-recipe-w{workers}.toml")
        ).sweep.workers == (workers,)
    with pytest.raises(UserError, match="8-14"):
        app(["recipe", str(study), "-n", "8-14"], standalone_mode=False)


def test_seeds_are_added_until_it_is_settled_whether_a_recipe_is_as_good(
    planned, surface
):
    surface.spread = 0.012
    recipes = [search_recipe(planned, workers) for workers in planned.workers]
    judged = rows_by_workers(planned, recipes)
    assert judged[8].verdict.kind == "unclear" and judged[8].verdict.needed > 3
    assert f"--settle {judged[8].verdict.needed}" in terminal(
        recipes_document(planned, recipes, judged)
    )
    assert seconds_to_settle(judged, recipes, judged[8]) > 0
    before = len(surface.ran)
    settled = settle(planned, recipes, 100)
    judged = rows_by_workers(planned, settled)
    assert judged[8].verdict.kind == "no-worse"
    seeds = {
        workers: [run.result.seed for run in recipe.runs]
        for workers, recipe in zip((1, 8), settled, strict=True)
    }
    assert seeds[1] == seeds[8] == list(range(8, 8 + judged[8].runs))
    assert len(surface.ran) - before == 2 * (
        judged[8].runs - 3
    )  # nothing that has ended is trained again
    assert settle(planned, settled, 100) == settled


def test_no_more_seeds_are_trained_than_allowed(planned, surface):
    surface.spread = 0.012
    recipes = settle(
        planned, [search_recipe(planned, workers) for workers in planned.workers], 4
    )
    assert [len(recipe.runs) for recipe in recipes] == [4, 4]
    assert rows_by_workers(planned, recipes)[8].verdict.kind == "unclear"
