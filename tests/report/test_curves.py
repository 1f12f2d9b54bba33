"""Losses as they are drawn: against four things, and thinned."""

import re

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.against_workers import quality
from scalestudy.report.curves import LEAST_EPOCHS, MOST_COUNTS, MOST_RECORDS, losses
from scalestudy.report.images import draw
from scalestudy.report.losses import losses as figures

COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)


def test_each_epoch_says_what_was_done_by_its_end():
    run = synthetic.run(epochs=3, samples=320, training_seconds=12.0)
    records, unit, few = losses(analyse("made", [run]))
    last = [record for record in records if record["set"] == "training"][-1]
    assert (last["epoch"], last["updates"], last["samples"], last["time"], unit) == (3, 60, 960, 12.0, "s")
    assert few == ""


def test_what_is_not_known_is_not_drawn_against():
    run = synthetic.run(epochs=3)
    epochs = tuple(record.model_copy(update={"steps": None}) for record in run.epochs)
    found = {figure.name for figure in figures(analyse("made", [synthetic.Run(run.result, epochs)]))}
    assert found == {"loss-by-epoch", "loss-by-samples", "loss-by-time"}


def test_of_many_counts_some_are_drawn_the_advised_one_among_them_and_the_page_says_so():
    findings = analyse("made", synthetic.seeded(COUNTS, ("native", "horovod"), seeds=2))
    records, _, few = losses(findings)
    counts = {record["workers"] for record in records}
    assert len(counts) == MOST_COUNTS
    assert findings.advice.choice.workers in counts
    assert few == f" Of 28 rows, {2 * MOST_COUNTS} are drawn."


def test_all_lines_together_have_a_bounded_weight():
    runs = [
        synthetic.run(name, n, epochs=200) for n in COUNTS[:8] for name in ("native", "horovod", "mirrored")
    ]
    records, *_ = losses(analyse("made", runs))
    assert len(records) <= MOST_RECORDS + 2 * len(runs)
    lines = {(record["strategy"], record["workers"], record["set"]) for record in records}
    assert len(records) / len(lines) >= LEAST_EPOCHS


def test_a_steep_loss_is_on_a_logarithmic_axis():
    def scale(losses):
        figure = figures(analyse("made", [synthetic.run(epochs=2, losses=losses)]))[0]
        return figure.spec["encoding"]["y"]["scale"]

    assert scale((50.0, 0.4))["type"] == "log"
    assert scale((1.0, 0.5)) == {"zero": False}


@pytest.mark.parametrize("name", ["epoch", "updates", "samples", "time"])
def test_all_ways_stand_in_one_place(name):
    figure = next(
        f for f in figures(analyse("made", synthetic.seeded((1, 2)))) if f.name == f"loss-by-{name}"
    )
    assert figure.group == "loss" and figure.choice.startswith("against ")


@pytest.mark.parametrize("epochs", [2, 3, 6])
def test_few_epochs_are_whole_numbers_below_the_axis(epochs):
    figure = figures(analyse("made", [synthetic.run(epochs=epochs)]))[0]
    written = [int(text) for text in re.findall(r">(\d+)</text>", draw(figure).svg)]
    assert written == list(range(1, epochs + 1))


def test_larger_batches_are_no_reason_where_the_batch_stays():
    def caption(batches):
        runs = [
            synthetic.Run(run.result.model_copy(update={"global_batch": batch}), run.epochs)
            for run, batch in zip(synthetic.seeded((1, 2), ("horovod",), seeds=1), batches, strict=True)
        ]
        findings = analyse("made", runs)
        return " ".join(figure.caption for figure in (*figures(findings), *quality(findings)))

    assert "larger" in caption((8, 16))
    assert "larger" not in caption((8, 8))
