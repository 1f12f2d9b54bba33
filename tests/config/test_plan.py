"""The section [plan]: what is planned changes no run, only what is concluded from runs."""

from pathlib import Path

import pytest

from scalestudy.config.differences import differences
from scalestudy.config.file import study_toml
from scalestudy.config.parse import parse_study
from scalestudy.config.settings import EFFICIENCY_TARGET, PlanSettings
from scalestudy.util.errors import UserError

TEXT = 'task = "cnn"\n[plan]\nepochs = 600\nsamples = 120_000\nruns = 40\nefficiency = 0.8\n'


def test_a_plan_is_read_and_written_again():
    study = parse_study(TEXT, Path("s.toml"))
    assert study.plan == PlanSettings(
        epochs=600, samples=120_000, runs=40, efficiency=0.8
    )
    assert parse_study(study_toml(study), Path("s.toml")).plan == study.plan


def test_without_a_plan_the_study_itself_is_the_training():
    plan = parse_study('task = "cnn"\n', Path("s.toml")).plan
    assert (plan.epochs, plan.samples, plan.runs, plan.efficiency) == (
        None,
        None,
        1,
        EFFICIENCY_TARGET,
    )


def test_another_plan_is_no_other_study():
    one, other = (
        parse_study(TEXT, Path("s.toml")),
        parse_study('task = "cnn"\n', Path("s.toml")),
    )
    assert list(differences((one, []), (other, []))) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[plan]\nepochs = 0\n", "epochs"),
        ("[plan]\nefficiency = 1.5\n", "efficiency"),
        ("[plan]\nepoch = 3\n", "`epochs`"),
        ('[plan]\nruns = "many"\n', "runs"),
        ("[sweep]\nefficiency = [0.7, 0.8]\n", "[plan]"),
        ("plan = 3\n", "[plan]"),
    ],
)
def test_what_is_wrong_in_a_plan_is_named(text, named):
    with pytest.raises(UserError) as refused:
        parse_study(f'task = "cnn"\n{text}', Path("s.toml"))
    assert named in str(refused.value)
