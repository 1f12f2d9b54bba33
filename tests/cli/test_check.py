"""`scalestudy check`: options, output and exit codes."""

import json
import re
from collections import namedtuple

import pytest

from scalestudy.features.check.check_report import REPORT_FILE, TOPICS, Plan, Report, write_plan
from scalestudy.features.check.host_checks import judge_folder
from scalestudy.plugins import strategies
from scalestudy.plugins.engines import engine_names

STUDY = 'task = "cnn"\n[sweep]\nworkers = [1, 2]\n'
SLOW = ("versions", "builds", "collectives")
"""Topics skipped here because they start other Python processes."""
WITHOUT = [part for topic in SLOW for part in ("--skip", topic)]
Done = namedtuple("Done", "returncode stdout stderr")
SITE = "cpus_per_node = 4\npartition = 'gpu'\n"


@pytest.fixture
def check(call):
    return lambda *arguments: Done(*call("check", *arguments))


@pytest.fixture
def study(tmp_path, tmp_path_factory, monkeypatch):
    # A failed check keeps its files in the temporary folder.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("temporary")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def write(text=STUDY):
        (tmp_path / "s.toml").write_text(text)
        return "s.toml"

    return write


def report_of(done):
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return json.loads(done.stdout)


def by_topic(report):
    return {topic: [line for line in report["lines"] if line["topic"] == topic] for topic in TOPICS}


@pytest.mark.slow
def test_a_study_is_checked_on_this_machine_and_nothing_is_left(check, study, tmp_path):
    done = check(study(), *WITHOUT, "--format", "json")
    assert done.returncode == 0, done.stderr
    lines = by_topic(report_of(done))
    assert "2 ranks on 1 host" in lines["ranks"][0]["seen"]
    for topic in ("folders", "devices", "cores"):
        assert lines[topic], topic
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


def test_the_table_says_what_failed_and_what_to_do(check, study, tmp_path, monkeypatch):
    def judged_by_nobody_else(folder, plan, on_progress, environment):
        return Report(lines=tuple(judge_folder("n1", folder) for folder in plan.folders))

    monkeypatch.setattr("scalestudy.features.check.check.check_here", judged_by_nobody_else)
    (tmp_path / "file").touch()
    done = check(study(STUDY + '[data]\ncache = "file/cache"\n'), *WITHOUT)
    assert done.returncode == 1
    assert re.search(r"^fail +folders ", done.stdout, re.MULTILINE), done.stdout
    assert "→ Name another folder" in done.stdout
    assert re.search(r"^Not ready: \d+ passed, \d+ warnings, \d+ failed.$", done.stdout, re.MULTILINE)


def test_a_study_for_a_queue_is_checked_without_its_nodes(check, study, tmp_path, monkeypatch):
    (tmp_path / "site.toml").write_text(SITE)
    monkeypatch.setenv("PATH", str(tmp_path))
    text = STUDY + '[launch]\non = "slurm"\nsite = "site.toml"\n'
    done = check(study(text), *WITHOUT, "--format", "json")
    lines = by_topic(report_of(done))
    assert done.returncode == 1 and "--submit" in done.stderr
    assert [line["status"] for line in lines["site"]] == ["pass"]
    assert "no Slurm client" in lines["slurm"][0]["seen"]
    assert lines["ranks"] == []


def test_nothing_is_submitted_when_a_line_says_fail(check, study, tmp_path, monkeypatch):
    (tmp_path / "site.toml").write_text(SITE)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = check("site.toml", *WITHOUT, "--submit")
    assert done.returncode == 1 and "Not submitted" in done.stderr
    assert not (tmp_path / "scalestudy-check").exists()


def test_the_folder_of_an_earlier_check_prints_its_report(check, study, tmp_path):
    folder = tmp_path / "earlier"
    write_plan(folder, Plan(workers=2))
    done = check("earlier")
    assert done.returncode == 1 and "Expected" in done.stderr
    (folder / REPORT_FILE).write_text(
        '{"schema_version": 3, "lines": [{"topic": "ranks", "status": "warn", "where": "n1 → n2", '
        '"seen": "slow", "action": "Wait."}], "bandwidth": []}'
    )
    done = check("earlier")
    assert done.returncode == 0 and "n1 → n2" in done.stdout and "1 warnings" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--skip", "colour"], "--skip with one of versions"),
        (["--nodes", "2"], "--submit together with --nodes"),
        (["nowhere.toml"], "nowhere.toml"),
        (["--out", "full"], "an empty or a new folder"),
    ],
)
def test_wrong_input_is_refused_before_anything_starts(check, study, tmp_path, arguments, named):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = check(*arguments)
    assert done.returncode == 2 and named in done.stderr, done.stderr


def test_all_strategies_of_all_engines_are_listed_with_what_is_missing_here(check):
    lines = {line["strategy"]: line for line in json.loads(check("--strategies", "--format", "json").stdout)}
    assert list(lines) == strategies.REGISTRY.names()
    assert {line["engine"] for line in lines.values()} == set(engine_names())
    assert (lines["horovod"]["nodes"], lines["mirrored"]["nodes"]) == (True, False)
    assert lines["tpu"]["missing"] and lines["tpu"]["action"]
    assert not lines["virtual"]["summed_by"] and not lines["virtual"]["missing"]
    table = check("--strategies").stdout
    assert all(re.search(rf"(?m)^{name} ", table) for name in lines)
