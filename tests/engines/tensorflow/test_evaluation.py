from scalestudy.engines.tensorflow.evaluation import by_class


def test_values_of_classes_go_by_names_that_can_be_a_column():
    found = by_class("iou", {0: 0.5, 1: 0.25}, ("background", "cell nucleus (dead)"))
    assert found == {"iou_background": 0.5, "iou_cell_nucleus_dead": 0.25}


def test_classes_of_one_name_or_none_are_told_apart_by_their_index():
    names = ("a b", "a-b", "c", "??")
    found = by_class("f1", dict.fromkeys(range(5), 0.5), names)
    assert list(found) == ["f1_a_b_0", "f1_a_b_1", "f1_c", "f1_3", "f1_4"]
