"""The section on cores per worker, as a reader sees it."""

import synthetic
from scalestudy.analysis.cores import NAME
from scalestudy.analysis.findings import analyse
from scalestudy.report.cores_section import cores_section
from scalestudy.report.document import Folded, Table, drawings


def study(*tried):
    return analyse(
        "study",
        [
            synthetic.run("mirrored", n, training_seconds=seconds, swept={NAME: cores})
            for n, cores, seconds in tried
        ],
    )


def every_row(section) -> Table:
    (folded,) = (block for block in section.blocks if isinstance(block, Folded))
    (table,) = folded.blocks
    return table


def test_the_best_of_each_number_of_workers_is_marked_in_table_and_figure():
    section = cores_section(study((1, 2, 90.0), (1, 4, 60.0), (1, 8, 61.0), (2, 2, 50.0), (2, 8, 40.0)))
    (best,) = (block for block in section.blocks if isinstance(block, Table))
    every = every_row(section)
    assert [(line[1], line[2], line[3]) for line in best.rows] == [("1", "4", "60.0"), ("2", "8", "40.0")]
    assert [line[4:6] for line in best.rows] == [("1.00", "1.00"), ("1.50", "0.75")]
    marks = [heading.brief for heading in every.headings].index("best")
    assert [(line[1], line[2]) for line in every.rows if line[marks]] == [("1", "4"), ("2", "8")]
    times, busy = drawings(section.blocks)
    (records,) = (
        times.spec["datasets"].values() if "datasets" in times.spec else [times.spec["data"]["values"]]
    )
    assert [(r["series"], r["cores"]) for r in records if r["best"]] == [
        ("mirrored, 1 worker", 4), ("mirrored, 2 workers", 8),
    ]  # fmt: skip
    assert busy.name == "cores-busy" and "CPUs" in str(busy.spec) and "GPUs" not in str(busy.spec)


def test_without_gpus_there_is_no_empty_column_of_theirs():
    section = cores_section(study((1, 2, 90.0), (1, 4, 60.0)))
    every = every_row(section)
    assert "GPUs" not in [heading.name for heading in every.headings]
    assert all(len(line) == len(every.headings) for line in every.rows)


def test_a_study_that_swept_no_cores_has_no_section():
    assert cores_section(analyse("study", synthetic.seeded())) is None
    assert cores_section(study((1, 4, 60.0), (2, 4, 40.0))) is None
