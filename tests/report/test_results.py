"""The table of results."""

import pytest

import synthetic
from imported_runs import cassava
from runs_to_target import TARGET, learning
from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.published import published_findings
from scalestudy.report.results import NO_REFERENCE, UNTIMED, results_table
from scalestudy.report.time_and_cost import time_and_cost


def table(runs, **options):
    return results_table(analyse("made", runs), **options)


def cell(made, row, name):
    place = [heading.name for heading in made.headings].index(name)
    return made.rows[row][place]


def test_every_row_is_there_and_the_advised_one_is_marked():
    findings = analyse("made", synthetic.seeded((1, 2, 4)))
    made = results_table(findings)
    assert [findings.rows[index].key for index in [made.chosen]] == [
        findings.advice.choice.key
    ]
    assert {len(row) for row in made.rows} == {len(made.headings)}
    assert [heading.name for heading in made.headings][made.essential - 1] == "Quality"


def test_a_value_has_its_interval_its_digits_for_sorting_and_its_verdict():
    quality = cell(table(synthetic.seeded((1, 2, 4))), 1, "Quality")
    assert str(quality) == "0.951 ± 0.001"
    assert quality.small == "0.949–0.952" and len(quality.sort) > 10
    assert quality.remark.startswith("no worse")


def test_what_is_missing_has_a_footnote_and_the_brief_table_has_none():
    made = table(synthetic.oversubscribed())
    assert str(cell(made, 2, "Cost efficiency")) == "n/a [1]"
    assert made.footnotes[0] == "oversubscribed: 4 workers with 1 core each on 2 cores"
    assert table(synthetic.oversubscribed(), brief=True).footnotes == ()


def test_an_asynchronous_row_is_marked():
    made = table([synthetic.run("single", 1), synthetic.run("parameter-server", 4)])
    assert [str(row[0]) for row in made.rows] == [
        "single",
        "parameter-server (asynchronous)",
    ]


def test_a_row_that_learned_nothing_stands_out_and_a_failed_run_has_a_note():
    qualities = ((1, 0.95), (1, 0.95), (2, 0.95), (2, 0.11))
    runs = [
        synthetic.run(
            "horovod", workers, seed, metric="accuracy", quality=quality, chance=0.12
        )
        for seed, (workers, quality) in enumerate(qualities)
    ]
    made = table(runs)
    assert (
        cell(made, 1, "Quality").kind == "worse" and cell(made, 0, "Quality").kind == ""
    )
    assert any("1 of 2" in note and "0.110" in note for note in made.footnotes)


def test_what_a_speed_up_lacks_is_named_once_and_of_the_row_s_engine():
    (row,) = analyse("made", [synthetic.run("native", 2)]).rows
    assert row.speed.reason.strategies.count("native") == 1


def test_the_useful_speed_up_has_a_column_where_the_batch_grows_and_states_who_never_arrived():
    runs = [
        learning("native", n, s, needed, 12, throughput=100.0 * n)
        for n, needed in ((1, 4000), (4, 8000), (8, 10**6))
        for s in range(2)
    ]
    made = results_table(analyse("made", runs, target_quality=TARGET))
    assert float(cell(made, 1, "Useful speed-up").text) == pytest.approx(2, rel=0.02)
    assert made.footnotes[cell(made, 2, "Useful speed-up").note - 1].startswith(
        "0 of 2 runs reached it"
    )
    with_equal_batches = [synthetic.changed(run, global_batch=16) for run in runs[:4]]
    equal = results_table(analyse("made", with_equal_batches, target_quality=TARGET))
    assert "Useful speed-up" not in [heading.name for heading in equal.headings]


def test_relative_speed_ups_are_headed_by_what_they_are_against():
    runs = synthetic.seeded((1, 2, 4), ("horovod",))
    units = [
        heading.unit
        for heading in table([run for run in runs if run.result.workers > 1]).headings
    ]
    assert sum("against 2" in unit for unit in units) == 3
    assert not any("against" in heading.unit for heading in table(runs).headings)


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        # Where a run used NCCL, each row says what it used.
        *(
            (
                {
                    "strategy": "native",
                    "implementation": "multiworker",
                    "communication": native,
                },
                {"strategy": "horovod", "communication": "gloo"},
                names,
            )
            for native, names in (
                ("nccl", ["native (multiworker, nccl)", "horovod (gloo)"]),
                ("auto", ["native (multiworker)", "horovod"]),
            )
        ),
    ],
)
def test_rows_say_how_they_were_computed_where_they_differ(first, second, names):
    runs = [synthetic.run(workers=2, **options) for options in (first, second)]
    assert [str(row[0]) for row in table(runs).rows] == names


def test_rows_of_several_engines_name_theirs():
    runs = synthetic.seeded((1,), seeds=1)
    mixed = [
        synthetic.changed(run, engine=name)
        for run, name in zip(runs, ("tensorflow", "torch"), strict=True)
    ]
    assert [str(row[0]) for row in table(mixed).rows] == [
        "mirrored (tensorflow)",
        "horovod (torch)",
    ]
    assert [str(row[0]) for row in table(runs).rows] == ["mirrored", "horovod"]


def test_a_cost_below_an_hour_is_in_minutes_as_in_the_figure():
    for seconds, unit, cost in (
        (60.0, "worker-min", 1.31),
        (60_000.0, "worker-h", 17.5),
    ):
        findings = analyse(
            "made",
            [synthetic.run("native", n, training_seconds=seconds / n) for n in (1, 2)],
        )
        made = results_table(findings)
        assert unit in [heading.unit for heading in made.headings]
        assert float(cell(made, 0, "Cost").text) == pytest.approx(cost, abs=0.05)
        (figure,) = time_and_cost(findings)
        values = [
            record["cost"]
            for rows in figure.spec["datasets"].values()
            for record in rows
        ]
        assert min(values) == pytest.approx(cost, abs=0.05)


def test_a_quality_that_is_better_lower_says_so_and_shows_its_digits():
    runs = [
        synthetic.run("horovod", n, s, metric="mse", quality=4.1e-4 + 1e-6 * s)
        for n in (1, 2)
        for s in (0, 1)
    ]
    made = table(runs)
    assert "mse, lower is better" in [heading.unit for heading in made.headings]
    assert cell(made, 0, "Quality").text == "0.0004105"


def test_of_numbers_from_elsewhere_there_is_no_column_that_is_known_of_no_row_and_none_twice():
    headings = [(each.name, each.unit) for each in table(cassava()).headings]
    assert headings == [
        ("Strategy", ""),
        ("Workers", ""),
        ("Time to train", "s, training only"),
        ("Cost efficiency", "cost of the reference / cost"),
        ("Quality", "quality"),
        ("Cost", "worker-min"),
        ("Speed-up", "training time"),
        ("Scaling efficiency", "training time"),
        ("Runs", ""),
    ]


def at_chance():
    return [
        synthetic.run(
            "horovod", n, metric="accuracy", quality=0.12 - 0.001 * n, chance=0.12
        )
        for n in (1, 2)
    ]


def test_rows_that_learned_nothing_share_a_footnote_and_their_costs_have_nothing_to_refer_to():
    made = table(at_chance())
    notes = [cell(made, row, "Quality").note for row in (0, 1)]
    assert notes[0] == notes[1] is not None
    assert {cell(made, row, "Quality").kind for row in (0, 1)} == {"worse"}
    assert cell(made, 0, "Time to train").text != "n/a"
    assert made.footnotes[cell(made, 0, "Cost efficiency").note - 1] == NO_REFERENCE
    assert UNTIMED not in made.footnotes


def test_a_row_that_is_passed_over_since_it_seems_worse_says_so_in_its_cell():
    findings = published_findings()
    decision, made = findings.advice.decision, results_table(findings)
    quality = [cell(made, index, "Quality") for index in range(len(findings.rows))]
    seems = [decision.verdicts[row.key].seems_worse for row in findings.rows]
    assert any(seems) and not all(seems)
    assert [each.remark.startswith("seems worse") for each in quality] == seems


@pytest.mark.parametrize(
    ("others", "shown"), [("--lr 0.1", []), ("--lr 0.2", ["arguments"])]
)
def test_arguments_of_a_script_are_a_column_only_where_they_differ(others, shown):
    runs = [
        synthetic.run("ddp", n, swept={"script.arguments": text, "train.epochs": 3})
        for n, text in ((1, "--lr 0.1"), (2, others))
    ]
    names = [heading.name for heading in table(runs).headings[2:4]]
    assert [name for name in names if name == "arguments"] == shown
    assert "epochs" in names
