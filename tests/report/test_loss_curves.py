"""Losses as drawn: against epochs and time, and downsampled."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.loss_curves import (
    LEAST_EPOCHS,
    MOST_COUNTS,
    MOST_RECORDS,
    WAYS,
    loss_records,
    losses,
)

COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)


def test_each_epoch_says_what_was_done_by_its_end():
    run = synthetic.run(epochs=3, samples=320, training_seconds=12.0)
    records, unit, few = loss_records(analyse("made", [run]))
    last = [record for record in records if record["set"] == "training"][-1]
    assert (last["epoch"], last["time"], unit) == (3, 12.0, "s")
    assert few == ""


def test_losses_are_drawn_against_each_measure_of_the_work():
    made = losses(analyse("made", [synthetic.run(epochs=3)]))
    assert [figure.name for figure in made] == [f"loss-by-{way}" for way in WAYS]
    assert {figure.group for figure in made} == {"loss"}


def test_a_caption_compares_curves_only_if_there_are_several():
    one = [synthetic.run(workers=1, epochs=3)]
    for runs, compared in (
        (one, False),
        ([*one, synthetic.run(workers=2, epochs=3)], True),
    ):
        first, *_ = losses(analyse("made", runs))
        assert ("more workers" in first.caption) == compared


def test_losses_that_are_no_numbers_are_left_out():
    run = synthetic.run(epochs=2)
    broken = run.epochs[1].model_copy(update={"loss": float("nan"), "validation": {}})
    records, *_ = loss_records(
        analyse("made", [synthetic.Run(run.result, (run.epochs[0], broken))])
    )
    assert [(record["epoch"], record["set"]) for record in records] == [
        (1, "training"),
        (1, "validation"),
    ]


def test_of_many_counts_some_are_drawn_the_advised_one_among_them_and_the_page_says_so():
    findings = analyse("made", synthetic.seeded(COUNTS, ("native", "horovod"), seeds=2))
    records, _, few = loss_records(findings)
    counts = {record["workers"] for record in records}
    assert len(counts) == MOST_COUNTS
    assert findings.advice.choice.workers in counts
    assert few == f" Of 28 rows, {2 * MOST_COUNTS} are drawn."


def test_long_trainings_are_downsampled_but_keep_their_last_epoch():
    records, unit, _ = loss_records(
        analyse("made", [synthetic.run(epochs=200, training_seconds=7535.0)])
    )
    assert len(records) < 2 * 65 and unit == "min"
    assert max(record["epoch"] for record in records) == 200


def test_all_lines_together_have_a_bounded_weight():
    names = ("native", "horovod", "mirrored")
    runs = [synthetic.run(name, n, epochs=200) for n in COUNTS[:8] for name in names]
    records, *_ = loss_records(analyse("made", runs))
    assert len(records) <= MOST_RECORDS + 2 * len(runs)
    lines = {(record["series"], record["workers"], record["set"]) for record in records}
    assert len(records) / len(lines) >= LEAST_EPOCHS


@pytest.mark.parametrize(
    ("first", "scale"), [(50.0, {"type": "log"}), (1.0, {"zero": False})]
)
def test_a_steep_loss_is_on_a_logarithmic_axis(first, scale):
    figure = losses(analyse("made", [synthetic.run(epochs=2, losses=(first, 0.4))]))[0]
    assert figure.spec["encoding"]["y"]["scale"] == scale
