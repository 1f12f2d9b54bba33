"""What to run, as a part of a study file."""

from scalestudy.features.proposal.remedy import Remedy, other_study, sweep_lines
from scalestudy.study.parse import parse_study


def test_what_is_lacking_is_added_to_what_the_study_has():
    remedies = [Remedy(workers=(1, 8)), Remedy(seeds=3), Remedy("Say so.")]
    assert sweep_lines(remedies, [2, 4], [0]) == "[sweep]\nworkers = [1, 2, 4, 8]\nseed = [0, 1, 2]\n"


def test_seeds_that_are_there_stay_and_are_counted():
    assert sweep_lines([Remedy(seeds=3)], [1], [5, 7]) == "[sweep]\nseed = [0, 5, 7]\n"
    assert sweep_lines([Remedy(seeds=2)], [1], [5, 7]) == ""


def test_nothing_is_said_where_nothing_is_to_be_added():
    assert sweep_lines([Remedy(workers=(1, 2))], [1, 2, 4], [0, 1]) == ""
    assert other_study([Remedy(seeds=3)]) == ""


def test_other_settings_make_a_study_of_its_own(tmp_path):
    text = other_study([Remedy(keys=(("train.batch", "global"), ("sweep.workers", [1, 2])))])
    assert text == '[train]\nbatch = "global"\n\n[sweep]\nworkers = [1, 2]\n'
    assert parse_study(f'task = "cnn"\n{text}', tmp_path / "study.toml").train.batch == "global"
