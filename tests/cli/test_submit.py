from pathlib import Path

import pytest

from data_settings import data_of

SITE = "cpus_per_node = 4\ntime_limit = '00:10:00'\n"
LAUNCH = '[launch]\non = "slurm"\nsite = "here.toml"\n'


@pytest.fixture
def queued(study: Path) -> Path:
    """The study file, set up for the queue of a site; its data is not prepared."""
    (study.parent / "here.toml").write_text(SITE)
    study.write_text(study.read_text() + LAUNCH)
    return study


def prepare(call, study: Path) -> None:
    assert call("data", "prepare", study)[0] == 0


def test_a_study_for_this_machine_is_refused_with_what_to_change(call, study: Path) -> None:
    code, _, errors = call("submit", study)
    assert code == 2
    assert 'Set on = "slurm"' in errors and f"scalestudy run {study}" in errors


def test_missing_data_is_refused_with_the_command_that_prepares_it(call, queued: Path, slurm) -> None:
    slurm(sbatch="echo 7")
    code, _, errors = call("submit", queued)
    assert code == 2
    assert f"scalestudy data prepare {queued}" in errors
    assert not (queued.parent / "studies").exists()


def test_what_would_be_submitted_is_shown_before_the_data_is_prepared(call, queued: Path, slurm) -> None:
    slurm(sbatch="exit 1")
    code, out, errors = call("submit", queued, "--dry-run")
    assert code == 0
    assert "#SBATCH --nodes=1" in out and "2 to submit" in out
    assert f"scalestudy data prepare {queued}" in errors
    assert not (queued.parent / "studies").exists()


@pytest.mark.parametrize("command", ["submit", "run"])
def test_a_missing_site_is_refused_with_the_line(call, queued: Path, command: str) -> None:
    (queued.parent / "here.toml").unlink()
    code, _, errors = call(command, queued)
    assert code == 2
    assert (
        "a site profile at" in errors and "study.toml, line 9" in errors and "scalestudy site init" in errors
    )


def test_what_is_submitted_is_queued_and_is_not_submitted_again(call, queued: Path, slurm) -> None:
    slurm(sbatch="echo 7", squeue="echo '7|PENDING||N/A|Priority'")
    prepare(call, queued)
    queued.write_text(queued.read_text().replace("workers = [1, 2]", "workers = 1"))
    code, text, _ = call("submit", queued)
    assert code == 0 and "Submitted native-w1-s0 as job 7" in text
    code, text, _ = call("submit", queued)
    assert code == 0 and "Nothing was submitted" in text
    assert "others come first" in call("status", queued.parent / "studies" / "study")[1]


def test_what_slurm_refuses_is_told_in_its_own_words_and_leaves_nothing(call, queued: Path, slurm) -> None:
    slurm(sbatch="echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1")
    prepare(call, queued)
    code, _, errors = call("submit", queued)
    assert code == 2 and "Invalid account" in errors
    assert not (queued.parent / "studies" / "study").exists()


def test_what_was_taken_before_a_refusal_is_told(call, queued: Path, slurm) -> None:
    refuses = 'echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2; exit 1'
    slurm(sbatch=f'[ -e "$0.1" ] && {{ {refuses}; }}; touch "$0.1"; echo 7')
    prepare(call, queued)
    code, text, errors = call("submit", queued, "--order", "rows")
    assert code == 2
    assert "Submitted native-w1-s0 as job 7" in text
    assert "1 of 2 points were submitted" in errors and "QOSMaxSubmitJobPerUserLimit" in errors


def test_a_dry_run_needs_no_slurm_and_writes_nothing(call, queued: Path) -> None:
    prepare(call, queued)
    before = set(queued.parent.rglob("*"))
    code, text, _ = call("submit", queued, "--dry-run", "--all")
    assert code == 0
    assert text.count("#!/usr/bin/env bash") == 2
    assert set(queued.parent.rglob("*")) == before
    assert call("run", queued, "--dry-run")[0] == 0


def test_a_dry_run_prints_one_script_and_a_line_for_each_further_point(call, queued: Path) -> None:
    prepare(call, queued)
    queued.write_text(queued.read_text().replace("seed = 0", "seed = [0, 1, 2, 3]"))
    text = call("submit", queued, "--dry-run", "--order", "rows")[1]
    assert text.count("#!/usr/bin/env bash") == 1
    commands = [line for line in text.splitlines() if line.startswith("sbatch ")]
    assert [line.split()[2].rpartition("/")[2] for line in commands] == [
        f"native-w{workers}-s{seed}.sh" for workers in (1, 2) for seed in range(4)
    ]
    for line in commands[1:]:  # only the rows of two workers ask for something else
        assert ("--cpus-per-task=2" in line) == ("-w2-" in line), line
        assert "--nodes" not in line


@pytest.mark.slow
def test_weights_that_may_be_missing_are_refused_where_they_can_be_fetched(
    call, queued: Path, slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm(sbatch="echo 7")
    (queued.parent / "mine.py").write_text("data = 'digits'\nkind = 'classes'\n")
    queued.write_text(queued.read_text().replace('"cnn"', '"mine.py"'))
    monkeypatch.setattr("scalestudy.app.weights.build_task", lambda *_: ())
    call("data", "prepare", "digits")
    from scalestudy.data.split import stored_split
    from scalestudy.data.store.preparation import find_prepared

    stored_split(find_prepared(data_of("digits")), None, 0)  # type: ignore[arg-type]
    code, _, errors = call("submit", queued)
    assert code == 2 and "model has been built here" in errors and "scalestudy data prepare" in errors
    prepare(call, queued)
    assert call("submit", queued)[0] == 0


def test_a_point_that_needs_more_than_a_node_has_is_refused(call, queued: Path) -> None:
    queued.write_text(queued.read_text().replace(LAUNCH, LAUNCH + "cpus_per_worker = 8\n"))
    code, _, errors = call("submit", queued)
    assert code == 2 and "4 cores of a node" in errors


def test_a_dry_run_for_pbs_prints_its_scripts_and_its_lines(call, queued: Path) -> None:
    queued.write_text(queued.read_text().replace('"slurm"', '"pbs"'))
    prepare(call, queued)
    before = set(queued.parent.rglob("*"))
    code, text, _ = call("submit", queued, "--dry-run", "--all")
    assert code == 0
    assert text.count("#PBS -l select=") == 2 and "#SBATCH" not in text
    assert text.count("\nqsub ") == 2
    assert "2 points, 2 to submit" in text
    assert set(queued.parent.rglob("*")) == before
