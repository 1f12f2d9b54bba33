import json

import pytest

import synthetic
from scalestudy.analysis.findings import read_study
from scalestudy.cli import main
from scalestudy.store.study_folder import StudyFolder


@pytest.fixture
def folder(tmp_path):
    runs = synthetic.seeded((1, 2, 4), ("native",))
    synthetic.write(tmp_path / "made", "made", runs)
    return tmp_path / "made"


def advise(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["advise", *map(str, arguments)])
    return ended.value.code, capsys.readouterr()


def test_json_has_the_reports_decision(folder, capsys):
    code, text = advise(capsys, folder, "--format", "json")
    assert code == 0
    record, decision = json.loads(text.out), read_study(StudyFolder.open(folder)).advice.decision
    assert record["kind"] == decision.kind
    assert record["best"]["workers"] == decision.choice.workers
    assert record["best"]["cost_efficiency"]["value"] == pytest.approx(decision.price.efficiency.value)


def test_what_the_site_bills_can_be_said(folder, capsys):
    _, text = advise(capsys, folder, "--bill", "node", "--format", "json")
    assert json.loads(text.out)["cost_unit"] == "node-hours"


@pytest.mark.parametrize(
    "options",
    [
        ["--efficiency", "1.5"],
        ["--efficiency", "150%"],
        ["--efficiency", "much"],
        ["--deadline", "soon"],
        ["--most", "0"],
        ["--network", "fast,2us"],
        ["--network", "100Gbot,2us"],
    ],
)
def test_goals_that_mean_nothing_are_refused(folder, capsys, options):
    assert advise(capsys, folder, *options)[0] == 2


def test_an_efficiency_may_be_a_percentage(folder, capsys):
    answers = [
        advise(capsys, folder, "--efficiency", share, "--format", "json")[1].out for share in ("0.8", "80 %")
    ]
    assert [json.loads(answer)["cost_efficiency_target"] for answer in answers] == [0.8, 0.8]


def test_over_a_network_larger_runs_than_were_measured_are_predicted(folder, capsys):
    network = ("--network", "1Gbit,50us,per_node=2", "--most", "64", "--format", "json")
    code, captured = advise(capsys, folder, *network)
    assert code == 0
    record = json.loads(captured.out)
    assert [run["workers"] for run in record["larger_runs"][0]["runs"]] == [1, 2, 4, 8, 16, 32, 64]
    assert record["best"] == json.loads(advise(capsys, folder, "--format", "json")[1].out)["best"]


@pytest.mark.slow
def test_the_newest_study_here_is_meant_where_none_is_named(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder.parent)
    (folder.parent / "another").mkdir()
    (folder.parent / "another" / "study.json").write_text('{"of": "another program"}')  # newer than the study
    assert advise(capsys, "--network", "1Gbit,50us")[0] == 0
