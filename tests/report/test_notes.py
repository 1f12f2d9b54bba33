from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.details import every_run
from scalestudy.report.notes import notes
from scalestudy.study.records import RankRecord


def test_the_method_of_the_intervals_has_its_sources():
    (method,) = [note for note in notes(analyse("made", synthetic.seeded())) if note.startswith("Intervals")]
    for source in ("Hoefler and Belli, SC15", "Fisher 1935", "Montgomery, chapter 4", "Anscombe 1948"):
        assert source in method


@pytest.mark.parametrize("order", ["blocks", "rows"])
def test_when_where_and_in_which_order_runs_were_taken_is_there(order):
    runs = [
        replace(run, result=run.result.model_copy(update={"order": order, "hosts": ["node07", "node08"]}))
        for run in synthetic.seeded((1, 2))
    ]
    (note,) = [note for note in notes(analyse("made", runs)) if "node07, node08" in note]
    assert f'"{order}"' in note and "2026-01-02" in note
    assert not any(f'"{order}"' in note for note in notes(analyse("made", synthetic.seeded((1, 2)))))


def test_the_margin_the_direction_and_chance_are_told():
    runs = [
        synthetic.run("horovod", n, s, metric="mse", quality=0.02, chance=0.19)
        for n in (1, 2)
        for s in (0, 1)
    ]
    told = notes(analyse("made", runs))
    (quality,) = [note for note in told if note.startswith("Quality is")]
    assert "mse (lower is better)" in quality
    assert "2 %" in quality
    assert any(note.startswith("A constant answer") and "0.19" in note for note in told)


def test_what_models_began_with_is_there_and_where_no_task_has_weights_nothing_is():
    def about(*weights):
        runs = [
            replace(run, result=run.result.model_copy(update={"weights": name}))
            for run, name in zip(synthetic.seeded(), weights, strict=False)
        ]
        return [note for note in notes(analyse("made", runs)) if "retrained" in note]

    assert about("none", "imagenet")[0].endswith("imagenet / none, from scratch.")
    assert about(None, None) == []


@pytest.mark.parametrize(
    ("recorded", "arithmetic", "free"),
    [((None, None), 0, 0), (("float32", True), 1, 0), (("tf32", False), 1, 1)],
)
def test_the_arithmetic_is_there_and_that_runs_need_not_repeat(recorded, arithmetic, free):
    known = dict(zip(("precision", "deterministic"), recorded, strict=True))
    runs = [replace(run, result=run.result.model_copy(update=known)) for run in synthetic.seeded((1,))]
    lines = notes(analyse("made", runs))
    assert sum(line.startswith(f"Arithmetic is {recorded[0]}") for line in lines) == arithmetic
    assert sum(line.startswith(f"In {len(runs)} of {len(runs)} runs") for line in lines) == free


def test_folds_are_repeats_that_a_report_names():
    runs = [synthetic.run("native", n, swept={"data.fold": fold}) for n in (1, 2) for fold in range(5)]
    findings = analyse("folds", runs)
    assert any(note.startswith("Folds and other splits are repeats") for note in notes(findings))
    assert not any("Folds" in note for note in notes(analyse("seeds", synthetic.seeded())))
    (runs_table,) = every_run(findings, "..").blocks
    folds = [heading.name for heading in runs_table.headings].index("Split")
    assert {row[folds] for row in runs_table.rows} == {f"fold {fold}" for fold in range(5)}
    assert "Split" not in str(every_run(analyse("seeds", synthetic.seeded()), ".."))


def test_chance_is_not_spoken_of_where_no_run_recorded_it():
    assert not any("One answer" in note for note in notes(analyse("made", synthetic.seeded())))


def test_runs_on_nodes_that_other_jobs_could_use_are_counted():
    rank = RankRecord(
        rank=0, size=1, local_rank=0, host="n1", pid=1, placement_source="slurm", cpus=[0], threads=1,
        devices=[], versions={},
    )  # fmt: skip
    runs = synthetic.seeded()

    def about(shared):
        with_rank = [
            replace(run, ranks=(rank.model_copy(update={"nodes_shared": shared}),)) for run in runs[:3]
        ]
        return [note for note in notes(analyse("made", [*with_rank, *runs[3:]])) if "other jobs" in note]

    (note,) = about(True)
    assert note.startswith(f"3 of {len(runs)} runs") and "exclusive = true" in note
    assert about(False) == about(None) == []


def on_gpus(run, devices, uuids=("GPU-a",)):
    gpu = {"devices": devices, "device_uuids": list(uuids)}
    return replace(run, ranks=tuple(rank.model_copy(update=gpu) for rank in run.ranks))


def test_runs_on_gpus_of_several_kinds_are_named():
    old, new, cpu = "NVIDIA GeForce GTX 1080", "NVIDIA GeForce RTX 4090", "/device:CPU:"
    first, second = synthetic.seeded()[:2]

    def about(*runs):
        return [note for note in notes(analyse("made", runs)) if "different GPUs" in note]

    (note,) = about(on_gpus(first, [new]), on_gpus(second, [new, old]))
    assert f"({old}, {new})" in note
    assert about(on_gpus(first, [new]), on_gpus(second, [new, new])) == []
    assert about(on_gpus(first, [cpu + "0"], ()), on_gpus(second, [cpu + "0", cpu + "1"], ())) == []


def test_a_run_without_its_model_is_named_with_the_reason():
    whole, lost = synthetic.seeded()[:2]
    lost = replace(lost, result=lost.result.model_copy(update={"model_missing": "OSError: No space left"}))
    told = [note for note in notes(analyse("made", [whole, lost])) if "saved model" in note]
    (note,) = [note for note in told if lost.result.name in note]
    assert f"{lost.result.name} (OSError: No space left)" in note
    assert f"{whole.result.name} (" not in note


@pytest.mark.parametrize(
    ("precision", "device", "noted"),
    [
        ("float32", "NVIDIA A100-SXM4-80GB", True), ("tf32", "NVIDIA A100-SXM4-80GB", False),
        ("float32", "Tesla V100-SXM2-16GB", False), ("mixed_bfloat16", "NVIDIA H200", False),
    ],
)  # fmt: skip
def test_float32_on_gpus_with_tf32_is_noted_since_it_flatters_efficiency(precision, device, noted):
    run = on_gpus(synthetic.run("horovod"), [device])
    run = replace(run, result=run.result.model_copy(update={"precision": precision}))
    assert any("TensorFloat-32" in note for note in notes(analyse("made", [run]))) == noted


def test_rows_of_several_engines_say_what_is_compared_between_them():
    def told(*engines):
        runs = [
            replace(run, result=run.result.model_copy(update={"engine": engine}))
            for engine, run in zip(engines, synthetic.seeded((1,), seeds=1), strict=True)
        ]
        return [note for note in notes(analyse("made", runs)) if "TensorFlow, theirs" in note]

    assert len(told("tensorflow", "theirs")) == 1
    assert told("tensorflow", "tensorflow") == []
