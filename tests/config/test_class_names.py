"""Names of the values of a metric for each class."""

from scalestudy.config.class_names import class_keys


def test_values_of_classes_go_by_names_that_can_be_a_column():
    result = class_keys("iou", ("background", "cell nucleus (dead)"))
    assert result == ["iou_background", "iou_cell_nucleus_dead"]


def test_classes_of_one_name_or_none_are_told_apart_by_their_index():
    assert class_keys("f1", ("a b", "a-b", "c", "??")) == [
        "f1_a_b_0",
        "f1_a_b_1",
        "f1_c",
        "f1_3",
    ]
