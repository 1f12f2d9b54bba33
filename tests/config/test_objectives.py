import pytest

from scalestudy.config.formula import WrongFormula
from scalestudy.config.metric_senses import known
from scalestudy.config.objectives import (
    LOSSES,
    METRICS,
    WEIGHTED,
    check_metrics,
    loss_terms,
    metric_key,
    metric_term,
)
from scalestudy.config.parse import parse_study
from scalestudy.config.settings import TrainSettings


def test_defaults_are_within_their_own_ranges():
    for table in (LOSSES, METRICS):
        for ranges in table.values():
            for item in ranges.values():
                assert (
                    item.default in item.words
                    if item.words
                    else item.low <= item.default <= item.high
                )


def test_what_is_said_of_some_is_said_of_ones_that_there_are():
    assert set(WEIGHTED) <= set(LOSSES)


def test_the_help_names_every_loss_and_every_metric():
    for key, table in (("loss", LOSSES), ("metrics", METRICS)):
        for name in table:
            assert name in (TrainSettings.model_fields[key].description or "")


@pytest.mark.parametrize("name", METRICS)
def test_each_metric_has_a_direction_that_analysis_knows_by_its_name(name):
    assert known(name).better
    assert known(name).bounded


def test_the_name_in_results_tells_metrics_apart():
    texts = ["f1", "top_k(k=5)", "top_k(k=3)"]
    assert [metric_key(metric_term(text)) for text in texts] == [
        "f1",
        "top_k",
        "top_k_3",
    ]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["top_k", "top_k(k=5)"], "each metric once"),
        (["f1 + iou"], "one metric"),
    ],
)
def test_metrics_that_do_not_go_together_are_refused(texts, expected):
    with pytest.raises(WrongFormula) as error:
        check_metrics(texts)
    assert error.value.expected.startswith(expected)


def study(tmp_path, train: str):
    return parse_study(f'task = "unet"\n[train]\n{train}\n', tmp_path / "study.toml")


def test_a_study_file_asks_for_them(tmp_path):
    text = (
        'loss = "0.5*bce + dice"\nmetrics = ["dice", "iou"]\nclass_weights = [1, 2.5]'
    )
    train = study(tmp_path, text).train
    assert (train.loss, train.metrics, train.class_weights) == (
        "0.5*bce + dice",
        ("dice", "iou"),
        (1.0, 2.5),
    )
    assert [term.name for term in loss_terms(train.loss)] == ["bce", "dice"]
    assert study(
        tmp_path, 'metrics = "f1"\nclass_weights = "balanced"'
    ).train.metrics == ("f1",)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (
            'loss = "bce + dise"',
            ("a known loss for train.loss", "line 3", "Did you mean `dice`?"),
        ),
        (
            'metrics = ["iou", "ious"]',
            ("a known metric", "line 3", "Did you mean `iou`?"),
        ),
        (
            "metrics = []",
            ('a list of metrics such as ["f1", "top_k(k=5)"]', "line 3", "Correct"),
        ),
        (
            "metrics = [1]",
            ('a list of metrics such as ["f1", "top_k(k=5)"]', "line 3", "Correct"),
        ),
        (
            'class_weights = "balance"',
            ("one for each class", "line 3", 'Did you mean "balanced"?'),
        ),
        (
            "class_weights = [1, -2]",
            ("a list of numbers, one for each class", "line 3", ""),
        ),
        ("loss = 3", ('a sum of losses such as "0.5*bce + dice"', "line 3", "")),
    ],
)
def test_what_is_wrong_is_refused_with_its_line_before_anything_starts(
    tmp_path, line, parts
):
    from scalestudy.util.errors import UserError

    with pytest.raises(UserError) as error:
        study(tmp_path, line)
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_losses_are_swept_and_lists_of_metrics_too(tmp_path):
    text = 'task = "unet"\n[sweep]\nworkers = 1\nloss = ["bce", "bce + dice"]\nmetrics = [["iou"], ["dice"]]\n'
    swept = parse_study(text, tmp_path / "study.toml").sweep.other
    assert swept == {
        "train.loss": ["bce", "bce + dice"],
        "train.metrics": [["iou"], ["dice"]],
    }
