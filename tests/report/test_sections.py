"""The section on the costs of runs, as readers see it."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import Document, Table
from scalestudy.report.sections import costs_section, models_section
from scalestudy.report.write_document import markdown
from scalestudy.store.records import GpuUse, NodeUse


def measured(workers, **changes):
    found = synthetic.run("horovod" if workers > 1 else "single", workers)
    told = {
        "gpus": [GpuUse(rank=0, device=0, joules=5400.0)],
        "nodes": [NodeUse(rank=0)],
        "usage_of": "run",
        "wall_seconds": 15.0,
        "better": "higher",
        "bounded": True,
        "flops_per_sample": 2e9,
        "precision": "float32",
        **changes,
    }
    return synthetic.changed(found, **told)


def page(*runs):
    section = costs_section(analyse("study", runs))
    assert section is not None
    return section, markdown(Document("Study", (section,)))


def test_each_table_holds_what_is_known_in_units_that_read_well():
    section, text = page(measured(1), measured(2))
    table, _ = section.blocks
    assert table.rows[1][:6] == ("horovod", "2", "30.0 s", "15.0 s", "1.50 Wh", "96")
    for told in ("15.0 s", "1.50 Wh", "2.00 GFLOP", "200 GFLOP/s"):
        assert told in text, told
    assert "Unknown: MFU, since the peak of CPUs is unknown." in text


def test_what_nobody_has_told_has_no_column_and_a_blank_is_no_zero():
    section, text = page(measured(1), measured(2, gpus=[], flops_per_sample=None))
    assert "GPU memory" not in text and "MFU |" not in text
    hours = next(block for block in section.blocks if isinstance(block, Table))
    (energy,) = (
        place
        for place, heading in enumerate(hours.headings)
        if heading.unit == "training"
    )
    assert [line[energy] for line in hours.rows] == ["1.50 Wh", ""]


def test_a_study_that_knows_nothing_of_its_costs_has_no_section():
    unknown = {"cpu_percent": [], "peak_memory_bytes": [], "wall_seconds": None}
    foreign = synthetic.changed(synthetic.run(), **unknown)
    assert costs_section(analyse("study", [foreign])) is None


def section(runs):
    return models_section(analyse("made", runs))


def table(found, name):
    return next(
        block
        for block in found.blocks
        if isinstance(block, Table) and block.name == name
    )


STUDY = synthetic.seeded((1, 2, 4, 8, 16))


@pytest.fixture(scope="module")
def whole():
    """The section of a study on nodes with four workers each."""
    return section([synthetic.on_nodes(run, 4) for run in STUDY])


def test_two_counts_have_no_scaling_model():
    assert section(synthetic.seeded((1, 2))) is None


def test_what_is_equal_of_all_trainings_is_said_once(whole):
    text = markdown(Document("Study", (whole,)))
    assert text.count("strong scaling") == 1
    alone = section(synthetic.seeded((1, 2, 4), ("horovod",)))
    assert markdown(Document("Study", (alone,))).count("strong scaling") == 1


def test_values_beyond_what_was_measured_are_marked_as_predicted(whole):
    rows = table(whole, "predicted").rows
    assert [row[:2] for row in rows] == [
        (strategy, count)
        for strategy in ("mirrored", "horovod")
        for count in ("32", "64")
    ]
    assert all("±" in row[2] or "–" in row[2] for row in rows)


def test_a_strategy_without_a_scaling_model_says_why():
    runs = [
        *synthetic.seeded((1, 2, 4), ("horovod",)),
        *synthetic.seeded((1, 2), ("mirrored",)),
    ]
    text = terminal(Document("made", (section(runs),)), 200)
    assert (
        "No scaling model for mirrored: a scaling model needs 3 different numbers"
        in text
    )


def test_without_one_worker_predictions_say_what_they_are_against():
    runs = [run for run in STUDY if run.result.workers >= 4]
    assert all(
        row[3].endswith("against 4 workers")
        for row in table(section(runs), "predicted").rows
    )
