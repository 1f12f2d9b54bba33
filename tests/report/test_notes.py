from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.runs import key_of_run
from scalestudy.report.details import every_run
from scalestudy.report.notes import environments, notes
from scalestudy.store.records import Timing


def test_when_and_where_runs_were_taken_is_there():
    runs = [
        synthetic.changed(run, hosts=["node07", "node08"])
        for run in synthetic.seeded((1, 2))
    ]
    (note,) = [
        note for note in notes(analyse("made", runs)) if "node07, node08" in note
    ]
    assert "2026-01-02" in note


def test_splits_are_repeats_that_a_report_names():
    runs = [
        synthetic.run("native", n, swept={"data.seed": seed})
        for n in (1, 2)
        for seed in range(5)
    ]
    findings = analyse("splits", runs)
    assert any(note.startswith("Splits are repeats") for note in notes(findings))
    assert not any(
        "Splits" in note for note in notes(analyse("seeds", synthetic.seeded()))
    )
    (runs_table,) = every_run(findings, "..").blocks
    splits = [heading.name for heading in runs_table.headings].index("Split")
    assert {row[splits] for row in runs_table.rows} == {
        f"seed {seed}" for seed in range(5)
    }
    assert "Split" not in str(every_run(analyse("seeds", synthetic.seeded()), ".."))


def test_a_study_that_ran_until_it_was_decided_says_how():
    steps = {
        "warm_up_steps": 10,
        "warm_up_seconds": 3.0,
        "steps": 10,
        "seconds": 2.0,
        "evaluations": [],
    }
    training = {
        f"training_{what}": 5
        for what in ("epochs", "updates", "samples", "evaluations")
    }
    timing = Timing.model_validate(steps | training | {"losses": [2.3, 2.2, 2.1]})
    runs = synthetic.seeded((1, 2), ("native",))
    timed = synthetic.changed(
        synthetic.run("native", 2, 9), timing=timing, quality=None
    )
    for taken, told in ((runs, False), ([*runs, timed], True)):
        assert (
            any("group-sequential" in note for note in notes(analyse("made", taken)))
            is told
        )


def test_runs_on_nodes_that_other_jobs_could_use_are_counted():
    runs = synthetic.seeded()

    def about(shared):
        rank = synthetic.rank().model_copy(update={"nodes_shared": shared})
        with_rank = [replace(run, ranks=(rank,)) for run in runs[:3]]
        return [
            note
            for note in notes(analyse("made", [*with_rank, *runs[3:]]))
            if "other jobs" in note
        ]

    (note,) = about(True)
    assert note.startswith(f"3 of {len(runs)} runs") and "exclusive = true" in note
    assert about(False) == about(None) == []


def on_gpus(run, devices, uuids=("GPU-a",)):
    gpu = {"devices": devices, "device_uuids": list(uuids)}
    return replace(run, ranks=tuple(rank.model_copy(update=gpu) for rank in run.ranks))


def test_runs_on_gpus_of_several_kinds_are_named():
    old, new, cpu = "NVIDIA GeForce GTX 1080", "NVIDIA GeForce RTX 4090", "/device:CPU:"
    first, second = synthetic.seeded((1, 2), ("horovod",), 1)

    def about(*runs):
        return [
            note for note in notes(analyse("made", runs)) if "different GPUs" in note
        ]

    (note,) = about(on_gpus(first, [new]), on_gpus(second, [new, old]))
    one, two = (key_of_run(run).label for run in (first, second))
    assert f"({old}: {two}; {new}: {one}, {two})" in note
    assert about(on_gpus(first, [new]), on_gpus(second, [new, new])) == []
    assert (
        about(
            on_gpus(first, [cpu + "0"], ()), on_gpus(second, [cpu + "0", cpu + "1"], ())
        )
        == []
    )


def test_a_run_without_its_model_is_named_with_the_reason():
    whole, lost = synthetic.seeded()[:2]
    lost = synthetic.changed(lost, model_missing="OSError: No space left")
    told = [
        note for note in notes(analyse("made", [whole, lost])) if "saved model" in note
    ]
    (note,) = [note for note in told if lost.result.name in note]
    assert f"{lost.result.name} (OSError: No space left)" in note
    assert f"{whole.result.name} (" not in note


@pytest.mark.parametrize(
    ("precision", "device", "noted"),
    [
        ("float32", "NVIDIA A100-SXM4-80GB", True),
        ("tf32", "NVIDIA A100-SXM4-80GB", False),
        ("float32", "Tesla V100-SXM2-16GB", False),
        ("mixed_bfloat16", "NVIDIA H200", False),
    ],
)
def test_float32_on_gpus_with_tf32_is_noted_since_it_flatters_efficiency(
    precision, device, noted
):
    run = on_gpus(synthetic.run("horovod"), [device])
    run = synthetic.changed(run, precision=precision)
    assert (
        any("TensorFloat-32" in note for note in notes(analyse("made", [run]))) == noted
    )


@pytest.mark.parametrize(
    ("ids", "environment"),
    [
        (("ab12",), "ab12 (/venvs/a)"),
        (("ab12", "cd34", "ab12"), "ab12 (/venvs/a); cd34 (/venvs/a)"),
        (("", ""), None),
    ],
)
def test_an_environment_is_named_by_its_id_and_folder_and_several_are_all(
    ids, environment
):
    known = [{"environment_id": each, "environment_name": "/venvs/a"} for each in ids]
    ranks = [synthetic.rank().model_copy(update=update) for update in known]
    listed = dict(
        environments([replace(synthetic.run(), ranks=(rank,)) for rank in ranks])
    )
    assert listed.get("Environment") == environment


def test_a_variable_is_named_once_with_all_its_values():
    ranks = tuple(
        synthetic.rank().model_copy(
            update={"environment": {"HOROVOD_RANK": str(rank), "HOROVOD_SIZE": "2"}}
        )
        for rank in range(2)
    )
    facts = dict(environments([replace(synthetic.run(), ranks=ranks)]))
    assert facts["Variables"] == "HOROVOD_RANK=0 or 1, HOROVOD_SIZE=2"
