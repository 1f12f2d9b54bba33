"""Twins that fail; `conduct/test_diagnose.py` runs real ones."""

import sys
from dataclasses import replace

import pytest
from made_diagnosis import point

from scalestudy.errors import RunError
from scalestudy.features.diagnose.twin import Ablation
from scalestudy.launch.local import ablation, workers
from scalestudy.launch.local.workers import worker_command
from scalestudy.study.record_file import read_record


@pytest.fixture
def commands(monkeypatch):
    """What would have been started, instead of which a process ends with code 3."""
    seen = []

    def command(*arguments):
        made = worker_command(*arguments)
        seen.append(made)
        return replace(made, arguments=[sys.executable, "-c", "raise SystemExit(3)"])

    for module in (ablation, workers):
        monkeypatch.setattr(module, "worker_command", command)
    monkeypatch.setattr("scalestudy.machine.devices.gpus", lambda: 0)
    monkeypatch.setenv("SCALESTUDY_NETWORK", "shared")
    return seen


def test_a_twin_that_fails_is_named_with_its_log(commands, tmp_path):
    with pytest.raises(RunError, match=r"of joined: .*exit code 3.*round-1/joined/logs/rank-"):
        list(ablation.run_ablations(point(), tmp_path, rounds=2, seconds=0.1))
    assert len(commands) == 2


def test_a_round_goes_over_its_blocks_several_times_and_lasts_as_long_as_asked(commands, tmp_path):
    with pytest.raises(RunError):
        list(ablation.run_ablations(point(), tmp_path, rounds=1, seconds=0.9))
    twin = read_record(tmp_path / "round-1" / "joined" / "ablation.json", Ablation).record
    assert twin.blocks == ablation.JOINED * ablation.TURNS
    assert twin.seconds * ablation.TURNS == pytest.approx(0.9)
    assert twin.worker is None


def test_workers_apart_have_the_ranks_cores_and_only_the_first_measures_alone(
    commands, tmp_path, monkeypatch
):
    monkeypatch.setattr(ablation, "_joined", lambda place, inside, twin: ())
    with pytest.raises(RunError, match="worker-"):
        list(ablation.run_ablations(point(), tmp_path, rounds=1, seconds=0.3))
    first, second = (
        read_record(tmp_path / "round-1" / name / "ablation.json", Ablation).record
        for name in ("worker-0", "worker-1")
    )
    assert first.blocks == ("alone", "full", "reference", "together") * ablation.TURNS
    assert second.blocks == ("together",) * ablation.TURNS
    assert first.beside == second.beside == ("worker-0", "worker-1")
    assert [each.environment["WORLD_SIZE"] for each in commands] == ["1", "1"]
    assert all(each.environment["RANK"] == "0" for each in commands)
    assert len(commands[0].cpus) == len(commands[1].cpus) == 1
