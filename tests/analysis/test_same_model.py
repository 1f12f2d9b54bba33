"""Runs of one row that trained different models are kept apart and named."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.same_model import MODEL, keep_models_apart


def runs(parameters, **fields):
    """Runs of one row by seed, with these numbers of parameters."""
    return [
        synthetic.changed(
            synthetic.run("horovod", 2, seed, quality=quality),
            parameters=count,
            **fields,
        )
        for seed, (count, quality) in enumerate(
            zip(parameters, (0.04, 1.0, 1.0, 1.0), strict=False)
        )
    ]


def test_two_models_in_a_row_are_two_rows_and_never_averaged():
    found = analyse("made", runs([685, 22_510]))
    assert [row.key.swept for row in found.rows] == [
        {MODEL: "22,510 parameters"},
        {MODEL: "685 parameters"},
    ]
    assert [row.quality.value for row in found.rows] == [1.0, 0.04]
    question = found.advice.open_questions[0]
    assert (
        "685 parameters" in question
        and "22,510 parameters" in question
        and "--out" in question
    )


def test_rows_of_other_models_are_compared_with_none_of_them():
    single = [
        synthetic.changed(synthetic.run("horovod", 1, seed), parameters=685)
        for seed in range(2)
    ]
    rows = {
        (row.workers, row.key.swept[MODEL]): row
        for row in analyse("m", single + runs([685, 22_510])).rows
    }
    assert rows[2, "685 parameters"].speed.steady.value is not None
    assert rows[2, "22,510 parameters"].speed.steady.value is None


def test_as_many_parameters_in_other_layers_are_another_model():
    one, other = runs([685, 685])
    pair = [
        synthetic.changed(one, shapes_digest="a" * 64),
        synthetic.changed(other, shapes_digest="b" * 64),
    ]
    apart, unlike = keep_models_apart(pair)
    assert [run.result.swept[MODEL][:23] for run in apart] == [
        "685 parameters, shapes "
    ] * 2
    assert len({run.result.swept[MODEL] for run in apart}) == 2 and len(unlike) == 1


def test_other_initial_weights_at_the_same_seed_are_named_and_make_a_choice_provisional():
    usual = synthetic.seeded((1, 2), ("horovod",))
    assert "other-models" not in analyse("made", usual).advice.decision.provisional
    begun = [
        synthetic.changed(run, initial_digest=f"{run.result.seed}" * 64)
        for run in usual
    ]
    assert keep_models_apart(begun) == (begun, [])
    again = synthetic.changed(begun[0], initial_digest="f" * 64, name="again")
    found = analyse("made", [*begun, again])
    assert found.advice.decision.provisional[-1] == "other-models"
    assert found.advice.headline.startswith("Provisionally")
    assert f"{begun[0].result.name} and again" in found.advice.open_questions[0]


@pytest.mark.parametrize(
    "fields",
    [{"swept": {"data.seed": 1}}, {"seed": 9}, {"strategy": "ddp", "engine": "torch"}],
)
def test_another_split_seed_or_engine_may_begin_with_other_weights(fields):
    (one,) = runs([685], initial_digest="a" * 64)
    other = synthetic.changed(one, initial_digest="b" * 64, **fields)
    assert keep_models_apart([one, other]) == ([one, other], [])


def test_runs_without_records_of_their_model_agree_with_all():
    some = [*runs([685, 685]), *runs([None])]
    assert keep_models_apart(some) == (some, [])
