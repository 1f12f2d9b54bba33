from pathlib import Path

import pytest

from scalestudy.launch.slurm import SlurmRefused, explained

SCRIPT = """#!/usr/bin/env bash
#SBATCH --nodes=2
#SBATCH --time=02:00:00
#SBATCH --gpus-per-node=4
#SBATCH --partition=nonsense
#SBATCH --account=research
#SBATCH --mem=900G
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "job.sh"
    file.write_text(SCRIPT)
    return file


@pytest.mark.parametrize(
    ("words", "asked", "key", "command"),
    [
        ("invalid partition specified: nonsense", "--partition=nonsense", "partition", "sinfo -s"),
        (
            "Batch job submission failed: Invalid account or account/partition combination specified",
            "--account=research", "account", "sacctmgr",
        ),
        ("Invalid qos specification", "", "qos", "sacctmgr"),
        ("Requested time limit is invalid (missing)", "--time=02:00:00", "time_limit", "%l"),
        (
            "Requested node configuration is not available", "--nodes=2 --gpus-per-node=4 --mem=900G",
            "gpus_per_node", "%G",
        ),
    ],
)  # fmt: skip
def test_a_refusal_names_what_was_asked_for_and_where_to_look(script, words, asked, key, command):
    error = explained(SlurmRefused("sbatch", words), script)
    assert error.received.startswith(words)
    assert asked in error.received
    assert key in error.action and command in error.action
    assert error.words.startswith(words)


def test_other_words_of_slurms_stay_as_they_are(script, tmp_path):
    assert explained(SlurmRefused("sbatch", "No more of this"), script).received == "No more of this"
    gone = SlurmRefused("sbatch", "invalid partition")
    assert explained(gone, tmp_path / "none").received == "invalid partition"
