"""The first study compares the same updates at every worker count, on synthetic data."""

import os
import subprocess
from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "examples" / "quickstart.toml"


def test_all_its_points_fit_two_cores_and_see_the_same_batches():
    study = load_study(STUDY)
    points = expand(study, gpus=0, cores=2)
    assert {(point.strategy, point.workers) for point in points} == {
        ("native", 1),
        ("native", 2),
        ("horovod", 1),
        ("horovod", 2),
    }
    assert len({point.global_batch for point in points}) == 1
    assert not any(point.oversubscribed for point in points)
    assert study.data.source is not None
    assert study.data.source.startswith("indents:")


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_it_runs_beside_any_number_of_gpus_as_without_them(gpus):
    study = load_study(STUDY)
    assert expand(study, gpus=gpus, cores=2, node_gpus=gpus) == expand(
        study, gpus=0, cores=2
    )


def test_only_the_tests_ask_for_pytorch(tmp_path):
    (tmp_path / "environments").mkdir()
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("setup.sh", "test-tools.sh"):
        script(tmp_path / "environments" / name, f'echo "{name} ${{TORCH:-none}}"')
    for name in ("ruff", "mypy", "python"):
        script(tmp_path / ".venv" / "bin" / name, "")
    asked = {
        target: subprocess.run(
            ["make", "-s", target],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            env={name: value for name, value in os.environ.items() if name != "TORCH"},
        ).stdout.splitlines()[0]
        for target in ("setup", "test", "test-fast")
    }
    assert asked == {
        "setup": "setup.sh none",
        "test": "setup.sh auto",
        "test-fast": "setup.sh auto",
    }


def script(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
