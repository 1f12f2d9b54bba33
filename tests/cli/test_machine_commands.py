"""`scalestudy check` and `site`: options, output and exit codes."""

import json
import re
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from scalestudy.features.check.check_files import REPORT_FILE, CheckPlan, write_plan
from scalestudy.features.check.check_report import TOPICS, Report
from scalestudy.features.check.host_checks import judge_folder
from scalestudy.launch.queue.site_profile import find_site
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
def check_study(tmp_path, tmp_path_factory, monkeypatch):
    # A failed check keeps its files in the temporary folder.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("temporary")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def write(text=STUDY):
        (tmp_path / "s.toml").write_text(text)
        return "s.toml"

    return write


def by_topic(done):
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    lines = json.loads(done.stdout)["lines"]
    return {
        topic: [line for line in lines if line["topic"] == topic] for topic in TOPICS
    }


@pytest.mark.slow
def test_a_study_is_checked_on_this_machine_and_nothing_is_left(
    check, check_study, tmp_path
):
    done = check(check_study(), *WITHOUT, "--format", "json")
    assert done.returncode == 0, done.stderr
    lines = by_topic(done)
    assert "2 ranks on 1 host" in lines["ranks"][0]["seen"]
    for topic in ("folders", "devices"):
        assert lines[topic], topic
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


def test_the_table_says_what_failed_and_what_to_do(
    check, check_study, tmp_path, monkeypatch
):
    def judged_by_nobody_else(folder, plan, on_progress, environment):
        return Report(
            lines=tuple(judge_folder("n1", *folder) for folder in plan.folders.items())
        )

    monkeypatch.setattr(
        "scalestudy.features.check.check.check_here", judged_by_nobody_else
    )
    (tmp_path / "file").touch()
    done = check(check_study(STUDY + '[data]\ncache = "file/cache"\n'), *WITHOUT)
    assert done.returncode == 1
    assert re.search(r"^fail +folders ", done.stdout, re.MULTILINE), done.stdout
    assert "→ Name another folder" in done.stdout
    assert re.search(
        r"^Not ready: \d+ passed, \d+ warnings, \d+ failed.$", done.stdout, re.MULTILINE
    )


def test_a_study_for_a_queue_is_checked_without_its_nodes(
    check, check_study, tmp_path, monkeypatch
):
    (tmp_path / "site.toml").write_text(SITE)
    monkeypatch.setenv("PATH", str(tmp_path))
    text = STUDY + '[launch]\non = "slurm"\nsite = "site.toml"\n'
    done = check(check_study(text), *WITHOUT, "--format", "json")
    lines = by_topic(done)
    assert done.returncode == 1 and "--submit" in done.stderr
    assert "no Slurm client" in lines["slurm"][0]["seen"]
    assert lines["ranks"] == []
    done = check("site.toml", *WITHOUT, "--submit")
    assert done.returncode == 1 and "Not submitted" in done.stderr
    assert not (tmp_path / "scalestudy-check").exists()


def test_the_folder_of_an_earlier_check_prints_its_report(check, check_study, tmp_path):
    folder = tmp_path / "earlier"
    write_plan(folder, CheckPlan(workers=2))
    done = check("earlier")
    assert done.returncode == 1 and "Expected" in done.stderr
    (folder / REPORT_FILE).write_text(
        '{"schema_version": 4, "lines": [{"topic": "ranks", "status": "warn", "where": "n1 → n2", '
        '"seen": "slow", "action": "Wait."}]}'
    )
    done = check("earlier")
    assert (
        done.returncode == 0
        and "n1 → n2" in done.stdout
        and "1 warnings" in done.stdout
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--skip", "colour"], "--skip with one of versions"),
        (["--nodes", "2"], "--submit together with --nodes"),
        (["nowhere.toml"], "nowhere.toml"),
        (["--out", "full"], "an empty or a new folder"),
    ],
)
def test_wrong_input_is_refused_before_anything_starts(
    check, check_study, tmp_path, arguments, named
):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = check(*arguments)
    assert done.returncode == 2 and named in done.stderr, done.stderr


@pytest.mark.slow
def test_all_strategies_of_all_engines_are_listed_with_what_is_missing_here(check):
    lines = {
        line["strategy"]: line
        for line in json.loads(check("--strategies", "--format", "json").stdout)
    }
    assert list(lines) == strategies.REGISTRY.names()
    assert {line["engine"] for line in lines.values()} == set(engine_names())
    assert (lines["horovod"]["nodes"], lines["mirrored"]["nodes"]) == (True, False)
    assert not lines["virtual"]["summed_by"] and not lines["virtual"]["missing"]
    table = check("--strategies").stdout
    assert all(re.search(rf"(?m)^{name} ", table) for name in lines)


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's site profiles, on a machine without Slurm."""
    (tmp_path / "bin").mkdir()
    for name in ("env", "bash", "cat", "echo", "sleep"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "scalestudy" / "sites"


def client(folder: Path, name: str, body: str) -> None:
    file = folder / "bin" / name
    file.write_text(f"#!/usr/bin/env bash\n{body}\n")
    file.chmod(0o755)


def test_site_init_writes_what_slurm_says_under_the_clusters_name(
    call, sites, tmp_path
):
    client(tmp_path, "sinfo", "echo 'gpu*|up|1-00:00:00|40|48|180000|gpu:v100:2'")
    client(tmp_path, "scontrol", "echo 'ClusterName = big'")
    client(tmp_path, "sacctmgr", "echo research")
    code, text, _ = call("site", "init")
    assert code == 0 and "scalestudy check big" in text
    site = find_site("big", Path())
    assert (site.partition, site.account) == ("gpu", "research")
    assert (site.gpus_per_node, site.cpus_per_node) == (2, 48)


@pytest.mark.parametrize("silent", [False, True])
def test_site_init_without_slurm_writes_a_file_to_fill_in_and_says_so(
    call, sites, tmp_path, monkeypatch, silent
):
    monkeypatch.setattr("scalestudy.launch.scheduler.TIMEOUT", 0.2)
    if silent:
        client(tmp_path, "sinfo", "sleep 60")
    for words, name in (
        (("mine",), "mine"),
        (("--out", tmp_path / "s.toml"), str(tmp_path / "s.toml")),
    ):
        code, _, errors = call("site", "init", *words)
        assert code == 0 and "Slurm" in errors
        assert find_site(name, Path()).cpus_per_node == 1


@pytest.mark.parametrize("name", ["../x", "a/b", "", "-x"])
def test_site_init_takes_no_name_that_is_no_files(call, sites, name):
    assert call("site", "init", "--", name)[0] == 2
    assert not sites.exists()
