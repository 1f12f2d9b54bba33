"""The search on this machine, with processes that stand in for those that train."""

import numpy as np
import pytest

from scalestudy.features.check import largest_batch as searching
from scalestudy.features.check.largest_batch import BatchTrial, largest_batch, search
from scalestudy.util import modules
from scalestudy.util.errors import RunError, UserError

MIB = 2**20
TRIAL = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
batch = json.loads((folder / "point.json").read_text())["train"]["batch_size"]
assert json.loads((folder / "trial.json").read_text()) == {"device": "cpu", "gpus": []}
def leave(**told):
    (folder / "result.json").write_text(json.dumps(told))
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """study(trial): a study whose trials run these lines of Python; 40 of its 50 samples train."""
    file, source = tmp_path / "study.toml", tmp_path / "images.npz"
    np.savez(source, x_train=np.zeros((50, 4, 4), np.uint8), y_train=np.arange(50) % 5)
    file.write_text(
        f'task = "cnn"\n[data]\nsource = "{source}"\nvalidation = 0.2\n[train]\nbatch_size = 4\n'
        '[sweep]\nstrategy = ["single", "virtual"]\nworkers = [1]\nseed = [0]\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def make(trial):
        (tmp_path / "stand_in_trial.py").write_text(TRIAL + trial)
        monkeypatch.setattr(modules, "BATCH_TRIAL", "stand_in_trial")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return str(file)

    return make


def test_the_largest_batch_is_searched_with_the_points_own_settings(study):
    told = []
    found = largest_batch(
        study("leave(fits=batch <= 13, peak=batch, why='too much')\n"), on_trial=told.append
    )
    assert (found.largest, found.samples, found.device) == (13, 40, "cpu")
    assert told[0].batch == 4 and told == list(found.trials)


def test_a_trial_that_takes_more_than_its_budget_is_ended(study, monkeypatch):
    monkeypatch.setattr(searching, "free_memory", lambda: int(150 * MIB / 0.9))
    took = f"taken = bytearray(400 * {MIB} if batch > 6 else 1)\nleave(fits=True)\nimport time\n"
    waits = "while batch > 6:\n    time.sleep(0.01)\n"  # it would never end by itself
    found = largest_batch(study(took + waits))
    assert found.largest == 6
    over = [each for each in found.trials if not each.fits]
    assert all(each.peak > 150 * MIB and "more than 150 MiB" in each.why for each in over)


def test_a_process_that_was_killed_did_not_fit(study):
    found = largest_batch(study("import os\nleave(fits=True) if batch < 5 else os.kill(os.getpid(), 9)\n"))
    assert found.largest == 4
    assert any("signal 9" in each.why for each in found.trials)


@pytest.mark.parametrize(
    ("trial", "said"),
    [("raise SystemExit('broken')\n", "broken"), ("leave(error=['a step', 'none', 'Look.'])\n", "a step")],
)
def test_what_fails_for_another_reason_is_told_and_is_no_answer(study, trial, said):
    with pytest.raises(RunError, match=said):
        largest_batch(study(trial))


def test_a_site_or_a_study_for_a_queue_is_refused_where_no_job_runs(study, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="--largest-batch"):
        largest_batch("")
    (tmp_path / "site.toml").write_text('partition = "p"\ngpus_per_node = 0\ncpus_per_node = 4\n')
    file = tmp_path / "queued.toml"
    file.write_text(
        'task = "cnn"\n[launch]\non = "slurm"\nsite = "site.toml"\n'
        '[sweep]\nstrategy = ["single"]\nworkers = [1]\n'
    )
    with pytest.raises(UserError, match="srun -n 1"):
        largest_batch(str(file))


@pytest.mark.parametrize("largest", [0, 1, 2, 7, 8, 9, 100, 1000])
@pytest.mark.parametrize("start", [1, 8, 64])
def test_the_largest_batch_is_found_exactly_and_never_beyond_the_training_set(largest, start):
    trials = search(lambda batch: BatchTrial(batch, batch <= largest), start=start, most=1000)
    assert max((trial.batch for trial in trials if trial.fits), default=0) == largest
    assert max(trial.batch for trial in trials) <= 1000
