from dataclasses import replace

import made

from scalestudy.analysis.findings import analyse
from scalestudy.report.notes import notes


def about_pooling(runs):
    return [note for note in notes(analyse("made", runs)) if "pooled:" in note]


def test_the_method_of_the_intervals_has_its_sources():
    (method,) = [note for note in notes(analyse("made", made.seeded())) if note.startswith("Intervals")]
    for words in ("Student's t", "Welch", "logarithms", "paired by seed", "Hoefler and Belli", "One run"):
        assert words in method


def test_what_was_pooled_is_told_with_its_degrees_of_freedom():
    (note,) = about_pooling(made.seeded())
    assert "throughput over 8 rows (16 degrees of freedom)" in note
    assert "quality over 8 rows (14 degrees of freedom)" in note


def test_a_row_that_spreads_further_is_named():
    runs = made.seeded((1, 2, 4, 8), ("horovod",))
    runs += [made.run("native", 1, seed, throughput=v) for seed, v in enumerate((10.0, 100.0, 1000.0))]
    (note,) = about_pooling(runs)
    assert "spread further than the others: native on 1 worker (throughput, training time)." in note


def test_two_rows_are_said_not_to_be_pooled():
    (note,) = [n for n in notes(analyse("made", made.seeded((1, 2), ("horovod",)))) if "No variance" in n]
    assert "3 rows of two runs or more" in note


def test_single_runs_have_nothing_to_pool():
    assert about_pooling(made.published()) == []
    assert not any("No variance" in note for note in notes(analyse("made", made.published())))


def test_a_run_without_its_model_is_named_with_the_reason():
    whole, lost = made.seeded()[:2]
    lost = replace(lost, result=lost.result.model_copy(update={"model_missing": "OSError: No space left"}))
    (note,) = [note for note in notes(analyse("made", [whole, lost])) if "model is missing" in note]
    assert f"{lost.result.name} (OSError: No space left)" in note
    assert f"{whole.result.name} (" not in note
