import os
import stat
import time
from pathlib import Path

import pytest

from scalestudy.errors import UserError
from scalestudy.launch.slurm import (
    TIMEOUT,
    TIMEOUT_VARIABLE,
    SlurmAbsent,
    SlurmRefused,
    SlurmSilent,
    ask,
    chunks,
    client_environment,
    refusal,
    time_limit,
)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a squeue with this body before all others."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(body: str) -> None:
        file = tmp_path / "squeue"
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    return make


def test_what_a_command_prints_is_returned_and_it_reads_no_input(program) -> None:
    program('cat; echo "$1|$LC_ALL|$SQUEUE_FORMAT"')
    assert ask("squeue", "-h") == "-h|C|\n"


def has_ended(stat: Path) -> bool:
    """On a busy machine a killed process takes its time to go."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_command_that_takes_too_long_is_ended_with_all_it_has_started(
    program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, "0.5")
    program(f"sleep 1000 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    with pytest.raises(SlurmSilent) as caught:
        ask("squeue")
    assert time.monotonic() - began < 300
    assert caught.value.reason == "none within 0.5 s"
    assert caught.value.exit_code == 1
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    assert has_ended(child)


def test_a_refusal_comes_in_slurms_own_words(program) -> None:
    program(
        'echo "squeue: Warning: this and that" >&2; echo "squeue: error: Invalid account." >&2;'
        'echo "squeue: error: Batch job submission failed" >&2; exit 1'
    )
    with pytest.raises(SlurmRefused) as caught:
        ask("squeue")
    assert caught.value.words == "Invalid account; Batch job submission failed"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "squeue: error: Socket timed out on send/recv operation",
        "sacct: error: failed to open persistent connection to host:db: Connection refused",
    ],
)
def test_an_unreachable_controller_is_silent_and_refuses_nothing(program, words: str) -> None:
    program(f'echo "{words}" >&2; exit 1')
    with pytest.raises(SlurmSilent, match="answer of Slurm"):
        ask("squeue")


def test_a_failure_without_a_word_names_its_exit_code(program) -> None:
    program("exit 7")
    with pytest.raises(SlurmRefused, match="exit code 7"):
        ask("squeue")


def test_a_machine_without_slurm_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmAbsent, match="module load slurm"):
        ask("squeue")


def test_a_users_own_formats_do_not_reach_the_parsers() -> None:
    environment = {
        "SQUEUE_FORMAT": "%i",
        "SACCT_FORMAT": "x",
        "SLURM_TIME_FORMAT": "relative",
        "LC_ALL": "de",
    }
    assert client_environment(environment | {"SLURM_CONF": "a", "SBATCH_ACCOUNT": "b"}) == {
        "SLURM_CONF": "a", "SBATCH_ACCOUNT": "b", "LC_ALL": "C",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_a_time_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=TIMEOUT_VARIABLE):
        time_limit({TIMEOUT_VARIABLE: text}, TIMEOUT_VARIABLE, TIMEOUT)


def test_the_time_limit_is_the_users_or_twenty_seconds() -> None:
    assert time_limit({}, TIMEOUT_VARIABLE, TIMEOUT) == 20
    assert time_limit({TIMEOUT_VARIABLE: " 2.5 "}, TIMEOUT_VARIABLE, TIMEOUT) == 2.5


def test_words_said_twice_are_kept_once() -> None:
    text = "slurm_load_jobs error: Invalid job id\nslurm_load_jobs error: Invalid job id\n"
    assert refusal("squeue", text) == "slurm_load_jobs error: Invalid job id"


def test_batches_hold_each_id_once_and_no_more_than_asked() -> None:
    ids = [str(number) for number in range(250)]
    batches = chunks(ids, 100)
    assert [len(batch) for batch in batches] == [100, 100, 50]
    assert [each for batch in batches for each in batch] == ids
