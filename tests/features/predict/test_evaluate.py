"""A model is evaluated only on sets with its own classes."""

from types import SimpleNamespace

import pytest

from scalestudy.features.predict.use_model import matched
from scalestudy.store.model_record import ModelRecord
from scalestudy.util.errors import UserError

RECORD = ModelRecord(
    task="cnn",
    kind="classes",
    input_shape=(8, 8, 1),
    dtype="uint8",
    scale=1 / 255,
    class_names=["a", "b", "c"],
)


def a_set(*names, kind="classes", scale=1 / 255):
    return SimpleNamespace(kind=kind, class_names=names, scale=scale)


def test_classes_are_matched_by_name_whatever_their_order():
    assert matched(RECORD, a_set("c", "a", "b"), "other") == [2, 0, 1]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (a_set("a", "b", "d"), "other with a, b, d"),
        (a_set("a", "b"), "other with a, b"),
        (a_set("a", "b", "c", "d"), "other with a, b, c, d"),
        (a_set("a", "b", "c", kind="masks"), "of the kind masks"),
        (a_set("a", "b", "c", scale=1.0), "other, multiplied by 1"),
    ],
)
def test_other_classes_kinds_and_numbers_are_refused(other, message):
    with pytest.raises(UserError, match=message):
        matched(RECORD, other, "other")
