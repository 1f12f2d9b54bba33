"""A number of workers to ask for, from a study's folder. Prints nothing."""

from pathlib import Path

from scalestudy.analysis.read import read_study
from scalestudy.analysis.scaling.recommend import Advisable, Goal, recommend
from scalestudy.errors import UserError
from scalestudy.study.store import StudyFolder


def recommended(folder: Path, goal: Goal) -> tuple[str, Advisable]:
    """The study's name, and the count of each of its strategies that reaches a goal best.

    Raises:
        UserError: No strategy has a scaling model to recommend by.
    """
    findings = read_study(StudyFolder.open(folder))
    found = recommend(findings, goal)
    if not any(model.fit for model in findings.models):
        raise UserError(
            "a study with finished runs at three numbers of workers or more of one strategy",
            f"{folder}: {'; '.join(found.reasons) or 'no finished run'}",
            "Sweep more numbers of workers, and run the study again.",
        )
    return findings.name, found
