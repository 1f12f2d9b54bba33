import json

import pytest

import synthetic
from comparison_studies import two_counts
from imported_runs import imported_run
from scalestudy.analysis.findings import analyse
from scalestudy.features.compare.comparison import compare
from scalestudy.features.compare.comparison_page import (
    compare_document,
    compare_json,
    summary,
)
from scalestudy.features.compare.sides import Side
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import Table
from scalestudy.report.write_document import markdown


@pytest.fixture(scope="module")
def comparison():
    return compare(two_counts("old"), two_counts("new_<b>", 0.8, **{"train.xla": True}))


def table(comparison):
    return next(
        block
        for block in compare_document(comparison).blocks
        if isinstance(block, Table)
    )


def test_the_page_says_how_many_differences_are_real_and_has_each(comparison):
    text = terminal(compare_document(comparison), 160)
    assert "Of 6 tested differences, 4 are more than chance" in text
    rows = table(comparison).rows
    assert len(rows) == 2 * 3
    (slow,) = (row for row in rows if row[:2] == ("samples/s", "horovod × 2"))
    assert (
        slow[2].text.startswith("200.4")
        and slow[4].text.startswith("0.800")
        and slow[5] == "slower"
    )
    assert "train.xla" in text


def test_the_page_is_written_in_every_form_whatever_names_hold(comparison):
    page = compare_document(comparison)
    assert "new_<b>" not in markdown(page) or r"\<b" in markdown(page)


def test_json_holds_one_record_a_row_and_a_quantity(comparison):
    rows = json.loads(compare_json(comparison))["rows"]
    assert len(rows) == 2 * 3
    slow = next(
        row for row in rows if row["quantity"] == "rate" and row["workers"] == 2
    )
    assert slow["change"] == pytest.approx(0.8)
    assert slow["real"] is True


def test_studies_without_a_shared_row_say_so():
    other = Side(
        "other", analyse("other", [synthetic.run("mirrored", 4)]), {"task": "unet"}
    )
    assert summary(compare(two_counts("old"), other)).startswith(
        "The studies share no row"
    )


def test_what_is_not_compared_says_why_in_a_footnote(comparison):
    other = two_counts("other")
    runs = [
        type(run)(
            run.result.model_copy(update={"global_batch": 99}),
            run.epochs,
            run.folder,
            run.ranks,
        )
        for run in other.findings.runs
    ]
    text = terminal(
        compare_document(
            compare(two_counts("old"), Side("other", analyse("other", runs)))
        ),
        200,
    )
    assert "not compared [1]" in text
    assert "[1] global batch: 16 and 99." in text


def imported_side(name, factor, **each):
    """Imported times on one and two workers, two runs each; `each` makes the recorded values."""
    return Side(
        name,
        analyse(
            name,
            [
                imported_run(
                    n,
                    line=10 * n + seed,
                    seed=seed,
                    **{
                        what: make((100 / n + 0.1 * seed) * factor)
                        for what, make in each.items()
                    },
                )
                for n in (1, 2)
                for seed in (0, 1)
            ],
        ),
    )


def test_training_times_alone_are_compared_once_and_called_no_samples_per_second():
    found = compare(
        imported_side("a", 1.0, training_seconds=float),
        imported_side("b", 1.3, training_seconds=float),
    )
    assert {row.quantity for row in found.rows if row.change.value} == {
        "training_seconds"
    }
    assert summary(found).startswith("Of 2 tested differences, 2 are more than chance")
    verdicts = {row[0]: row[5] for row in table(found).rows}
    assert verdicts["training, s"] == "longer"
    assert verdicts["samples/s"].startswith("not compared")


def test_epochs_alone_are_compared_in_epochs():
    sides = [
        imported_side(name, factor, epoch_seconds=float)
        for name, factor in (("a", 1), ("b", 1.3))
    ]
    first = table(compare(*sides)).rows[0]
    assert first[0] == "epochs/h"
    assert first[2].text.startswith("36.0")  # 100 s
