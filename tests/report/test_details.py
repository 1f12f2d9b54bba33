"""Details of a page: all metrics, samples, every run."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.details import (
    MOST_CLASSES,
    all_metrics,
    every_run,
    gallery_blocks,
)
from scalestudy.store.model_record import GalleryRecord, GallerySample

NAMES = ["background", "cell <b>"]


def measured(workers, seed, value, *, names=NAMES):
    """A run with known metrics; the second class's Dice is a quarter of `value`."""
    values = {
        "loss": 0.5,
        "iou": value,
        "dice": value,
        "dice_background": value,
        "dice_cell_b": value / 4,
    }
    run = synthetic.run(workers=workers, seed=seed, quality=value)
    return synthetic.changed(run, validation=values, class_names=list(names))


@pytest.fixture(scope="module")
def findings():
    return analyse(
        "made", [measured(1, 0, 0.8), measured(1, 1, 0.6), measured(2, 0, 0.4)]
    )


def names_of(table):
    return [heading.name for heading in table.headings[1:]]


def test_every_row_shows_the_means_of_its_metrics_and_not_those_of_classes(findings):
    table = all_metrics(findings)[0]
    assert names_of(table) == ["loss", "IoU", "Dice"]
    assert table.rows == (
        ("single on 1 worker", "0.5000", "0.7000", "0.7000"),
        ("single on 2 workers", "0.5000", "0.4000", "0.4000"),
    )


def test_classes_are_those_of_one_row(findings):
    (_, classes) = all_metrics(findings)
    assert classes.caption == "By class: single on 1 worker"
    assert names_of(classes) == ["Dice"]
    assert classes.rows == (("background", "0.7000"), ("cell <b>", "0.1750"))


def test_a_class_without_a_value_has_none_and_of_many_classes_only_metrics_are_shown():
    run = measured(1, 0, 0.8)
    del run.result.validation["dice_cell_b"]
    assert all_metrics(analyse("made", [run]))[1].rows[1] == ("cell <b>", "n/a")
    many = [f"c{number}" for number in range(MOST_CLASSES + 1)]
    assert len(all_metrics(analyse("made", [measured(1, 0, 0.8, names=many)]))) == 1
    assert all_metrics(analyse("made", [synthetic.run()])) == []


def test_the_list_of_runs_has_their_nodes():
    def listed(run):
        (table,) = every_run(analyse("made", [run]), "..").blocks
        return dict(zip(names_of(table), map(str, table.rows[0][1:]), strict=True))

    run = synthetic.run()
    assert (
        listed(synthetic.changed(run, hosts=["node07", "node08"]))["Nodes"]
        == "node07 and 1 more"
    )
    assert {"Nodes", "Reason"}.isdisjoint(listed(run))


def test_undone_runs_come_first_with_their_reasons_and_links():
    runs = every_run(
        analyse("made", [synthetic.run()], synthetic.unfinished()), "../study"
    )
    assert runs.title == "Runs: 1 failed, 1 missing, 1 running, 1 done"
    (table,) = runs.blocks
    assert table.rows[0][0].link == "../study/points/horovod-w8-s2/run-1/"
    assert "ended by signal 9" in table.rows[0][-1]
    assert every_run(analyse("made", []), "..") is None


def samples(kind="masks", **sample):
    pictures = dict.fromkeys(("image", "truth", "prediction", "difference"), "aGVsbG8=")
    values = {
        "name": "a<b>.png",
        "roles": ["median by loss", "worst by loss"],
        "loss": 0.25,
    }
    known = [GallerySample.model_validate({**values, "pictures": pictures, **sample})]
    record = GalleryRecord(kind=kind, considered=8, of=20, samples=known)
    words, *_, photos = gallery_blocks(record)
    return words.text, photos.photos[0]


def test_samples_say_how_they_were_chosen_and_describe_every_picture():
    text, photo = samples()
    assert "8 of 20 validation samples" in text
    assert "median by loss, worst by loss" in photo.caption
    assert [description for _, description in photo.images][
        1
    ] == "truth of a<b>.png: loss 0.2500"
    assert len(photo.images) == 4


@pytest.mark.parametrize(
    ("predicted", "words"),
    [("dog", "predicted dog (85 %), truth cat"), ("cat", "cat (85 %), correct")],
)
def test_a_class_is_said_with_its_probability_and_whether_it_is_mistaken(
    predicted, words
):
    assert (
        words in samples(truth="cat", predicted=predicted, probability=0.85)[1].caption
    )
