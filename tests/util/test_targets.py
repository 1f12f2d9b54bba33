"""Commands write where the user names it, and neither over inputs nor into the records of a study."""

from pathlib import Path

import pytest

from scalestudy.util.errors import UserError
from scalestudy.util.targets import refuse_inside_study, refuse_target


@pytest.fixture
def study(tmp_path):
    """A study's folder, a link to it, and its file beside it."""
    folder = tmp_path / "studies" / "one"
    (folder / "points" / "p" / "run-1").mkdir(parents=True)
    (folder / "report").mkdir()
    (folder / "study.json").touch()
    (tmp_path / "one.toml").touch()
    (tmp_path / "linked").symlink_to(folder)
    return folder


@pytest.mark.parametrize(
    "name",
    [
        ".",
        "study.json",
        "new.csv",
        "points/p/run-1/result.json",
        "points/x/y.csv",
        "report/../a.csv",
    ],
)
def test_a_target_in_a_study_is_refused_by_whatever_path(study, tmp_path, name):
    for folder in (study, tmp_path / "linked"):
        with pytest.raises(UserError) as refused:
            refuse_target(folder / name)
        assert str(study) in refused.value.received


def test_its_report_and_all_else_may_be_written(study, tmp_path):
    for target in (
        study / "report" / "mine.csv",
        study / "report",
        tmp_path / "a.csv",
        study.parent,
        None,
    ):
        refuse_target(target, [study, None])


def test_inputs_and_study_files_are_no_targets(study, tmp_path):
    (tmp_path / "numbers.csv").touch()
    (tmp_path / "link.csv").symlink_to("numbers.csv")
    for target in ("numbers.csv", "link.csv", "one.toml"):
        with pytest.raises(UserError):
            refuse_target(tmp_path / target, [str(tmp_path / "numbers.csv")])
    refuse_target(tmp_path / "numbers.csv", force=True)
    refuse_inside_study(tmp_path / "one.toml")


@pytest.mark.parametrize(
    "target", ["/unmounted-scratch/report.md", "/unmounted-scratch/a/b"]
)
def test_no_folder_is_made_at_the_root(target):
    with pytest.raises(UserError) as caught:
        refuse_target(Path(target))
    assert (
        caught.value.expected.endswith("/unmounted-scratch")
        and target in caught.value.received
    )
    assert not Path("/unmounted-scratch").exists()
