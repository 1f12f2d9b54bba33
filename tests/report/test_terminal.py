import made
import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.report.terminal import render_text


def text(runs, planned=(), width=120):
    return render_text(analyse("made", runs, planned), width)


def test_intervals_stand_beside_the_values():
    assert "6.64 ± 0.09" in text(made.seeded())


def test_the_advice_and_how_it_was_measured_are_under_the_table():
    shown = text(made.seeded(), made.unfinished())
    assert shown.index("Efficiency") < shown.index("Ask for 8 workers with mirrored.")
    assert "Not settled" in shown
    assert "How this was measured" in shown
    assert "all but the first" in shown
    assert "Not in the table: 3 of 3 runs" in shown


def test_a_missing_value_has_its_reason_in_a_footnote():
    shown = text(made.oversubscribed())
    assert "n/a [1]" in shown
    assert "[1] oversubscribed: 4 workers with 1 core each on 2 cores" in shown
    assert "Oversubscribed points" in shown


@pytest.mark.parametrize("width", [80, 100, 120])
def test_lines_fit_the_terminal(width):
    shown = text(made.published() + made.seeded((1, 2), ("mirrored", "virtual")), made.unfinished(), width)
    assert max(len(line) for line in shown.splitlines()) <= width
    assert "…" not in shown


@pytest.mark.parametrize("width", [80, 100])
def test_a_narrow_terminal_has_short_headings_that_are_not_cut_up(width):
    first = text(made.seeded(), width=width).splitlines()[1]
    assert first.split() == [
        "strategy", "n", "S", "E", "IoU", "samples/s", "time", "s", "S", "of", "time", "runs", "batch"
    ]  # fmt: skip
    assert "throughput" in text(made.seeded(), width=120).split("mirrored")[0]


def test_relative_speed_ups_are_headed_by_what_they_are_against():
    shown = text([run for run in made.seeded((1, 2, 4), ("horovod",)) if run.result.workers > 1])
    assert "\n".join(shown.splitlines()[:5]).count("against 2") == 3
    assert "against" not in text(made.seeded((1, 2, 4), ("horovod",))).split("horovod")[0]


def test_where_a_run_used_nccl_each_row_says_what_it_used():
    def shown(native: str) -> str:
        runs = [
            made.run("native", 2, implementation="multiworker", communication=native),
            made.run("horovod", 2, communication="gloo"),
        ]
        return text(runs, width=160)

    assert "native (multiworker, nccl)" in shown("nccl") and "horovod (gloo)" in shown("nccl")
    assert "native (multiworker) " in shown("auto") and "gloo" not in shown("auto")


def test_names_of_points_are_no_markup():
    shown = text(made.seeded((1, 2), ("horovod",), swept={"train.note": "[red]loud[/red]"}))
    assert "[red]loud[/red]" in shown


def test_a_study_without_results_says_so():
    shown = text([], made.unfinished())
    assert "No run has finished" in shown
    assert "horovod-w8-s2" in shown
    assert "How this was measured" not in shown


def test_a_quality_that_is_better_lower_says_so_and_shows_its_digits():
    runs = [
        made.run("horovod", n, s, metric="mse", quality=4.1e-4 + 1e-6 * s) for n in (1, 2) for s in (0, 1)
    ]
    shown = text(runs, width=160)
    assert "mse, lower is better" in shown
    assert "0.0004105" in shown


def test_models_at_chance_are_named_under_the_table():
    runs = [
        made.run("horovod", n, s, metric="accuracy", quality=0.11, chance=0.12)
        for n in (1, 2)
        for s in (0, 1)
    ]
    shown = " ".join(text(runs).split())
    assert "No point has learned anything, so there is nothing to advise." in shown
    assert "learned nothing: accuracy 0.110 is no better than the 0.120 of one answer for everything" in shown
