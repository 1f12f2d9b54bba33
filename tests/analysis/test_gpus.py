"""Utilisation and energy of GPUs in the table: means of what was told, blanks for what was not."""

from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.frames import summary
from scalestudy.analysis.gpus import energy_note
from scalestudy.study.usage import GpuUse


def on_gpus(*uses, seed=0, **changes):
    run = synthetic.run(seed=seed)
    gpus = [GpuUse(rank=rank, device=0, **use) for rank, use in enumerate(uses)]
    return replace(run, result=run.result.model_copy(update={"gpus": gpus, **changes}))


def row(*runs):
    return summary(runs).row(0, named=True)


GOOD = {"percent": 80.0, "joules": 1000.0, "energy_from": "counter"}
OTHER = {"percent": 60.0, "joules": 3000.0, "energy_from": "power"}


def test_energy_is_of_all_gpus_of_one_training_and_utilisation_of_each():
    found = row(on_gpus(GOOD, OTHER), on_gpus(GOOD, GOOD, seed=1))
    assert (found["gpu_joules"], found["gpu_percent"]) == (pytest.approx(3000), pytest.approx(75))


def test_one_gpu_that_has_not_told_leaves_a_blank():
    found = row(on_gpus(GOOD, {"percent": 50.0}))
    assert (found["gpu_joules"], found["gpu_percent"]) == (None, 65)
    assert row(on_gpus(GOOD, {"joules": 1.0}))["gpu_percent"] is None


def test_a_resumed_run_does_not_know_its_energy():
    assert row(on_gpus(GOOD, restarts=1))["gpu_joules"] is None


def test_cpus_have_none_and_the_columns_stay():
    found = row(synthetic.run())
    assert (found["gpu_joules"], found["gpu_percent"]) == (None, None)


def test_where_energies_come_from_is_said():
    assert "own counters and by their power" in energy_note([on_gpus(GOOD, OTHER)])[0]
    assert "counters; util" in energy_note([on_gpus(GOOD)])[0]
    assert energy_note([synthetic.run()]) == []
