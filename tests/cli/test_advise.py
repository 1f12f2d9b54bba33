import json

import pytest

import made
from scalestudy.analysis.read import read_study
from scalestudy.cli import main
from scalestudy.study.store import StudyFolder


@pytest.fixture
def folder(tmp_path):
    runs = made.seeded((1, 2, 4), ("native",))
    made.write(tmp_path / "made", "made", runs)
    return tmp_path / "made"


def advise(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["advise", *map(str, arguments)])
    return ended.value.code, capsys.readouterr()


def test_json_has_the_reports_decision(folder, capsys):
    code, said = advise(capsys, folder, "--format", "json")
    assert code == 0
    told, decision = json.loads(said.out), read_study(StudyFolder.open(folder)).advice.decision
    assert told["kind"] == decision.kind
    assert told["best"]["workers"] == decision.choice.workers
    assert told["best"]["cost_efficiency"]["value"] == pytest.approx(decision.price.efficiency.value)


def test_what_the_site_bills_can_be_said(folder, capsys):
    _, said = advise(capsys, folder, "--bill", "node", "--format", "json")
    assert json.loads(said.out)["cost_unit"] == "node-hours"


@pytest.mark.parametrize(
    "options",
    [["--deadline", "2h", "--energy"], ["--efficiency", "1.5"], ["--deadline", "soon"], ["--most", "0"]],
)
def test_goals_that_mean_nothing_are_refused(folder, capsys, options):
    assert advise(capsys, folder, *options)[0] == 2
