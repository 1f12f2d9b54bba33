import numpy as np
import pytest

from gathered import IGNORED, Gathered, measured
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.image_metrics import THRESHOLDS, ObjectAP, object_score

pytestmark = pytest.mark.engine


def squares(*corners, size=4, shape=(24, 24)):
    mask = np.zeros(shape, bool)
    for y, x in corners:
        mask[y : y + size, x : x + size] = True
    return mask


def by_definition(true, found):
    """Of the Data Science Bowl 2018: every pair of objects, one after the other."""
    from scipy.ndimage import label

    one, two = (label(each, np.ones((3, 3)))[0] for each in (true, found))
    scores = []
    for threshold in THRESHOLDS:
        hits = 0
        for a in range(1, one.max() + 1):
            for b in range(1, two.max() + 1):
                both = ((one == a) & (two == b)).sum()
                hits += both / ((one == a) | (two == b)).sum() > threshold
        scores.append(hits / (hits + (one.max() - hits) + (two.max() - hits)))
    return np.mean(scores)


def test_the_thresholds_are_those_of_the_competition():
    assert [f"{each:.2f}" for each in THRESHOLDS] == [
        "0.50", "0.55", "0.60", "0.65", "0.70", "0.75", "0.80", "0.85", "0.90", "0.95",
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_it_is_that_of_its_definition(seed):
    draw = np.random.default_rng(seed)
    true, found = (squares(*draw.integers(0, 20, (5, 2))) for _ in range(2))
    found[true] |= draw.random(true.sum()) < 0.9
    assert object_score(true, found, 8) == pytest.approx(by_definition(true, found))


def test_what_is_found_missed_and_made_up_is_counted():
    two = squares((2, 2), (12, 12))
    assert object_score(two, two, 8) == 1
    assert object_score(two, squares((2, 2)), 8) == 0.5
    assert object_score(two, squares((2, 2), (12, 12), (2, 14)), 8) == pytest.approx(2 / 3)
    assert object_score(two, squares(), 8) == object_score(squares(), two, 8) == 0
    assert np.isnan(object_score(squares(), squares(), 8))


def test_a_match_needs_an_iou_above_the_threshold_not_at_it():
    true, found = squares((0, 0)), squares((0, 0))
    found[0:2, 0:4] = False  # half of it
    assert object_score(true, found, 8) == 0
    found[1, 0] = True
    assert object_score(true, found, 8) == pytest.approx(0.2)  # 9/16 is above 0.5 and 0.55


def test_diagonal_neighbours_are_one_object_or_two_by_the_connectivity():
    true = squares((2, 2), (6, 6))
    only = squares((2, 2))
    assert object_score(true, only, 4) == 0.5
    assert object_score(true, only, 8) == 0  # half of one object


def test_images_count_alike_and_those_without_objects_not_at_all():
    true = np.stack([squares((2, 2), (12, 12)), squares((5, 5)), squares()])
    found = np.stack([squares((2, 2)), squares((5, 5)), squares()])
    given = Gathered(
        DataInfo("masks", (24, 24, 1), 2), true.astype("uint8"), found[..., None].astype("float32")
    )
    assert measured(ObjectAP(), given) == pytest.approx((0.5 + 1) / 2)


def test_ignored_pixels_are_of_no_object():
    true = squares((2, 2), (12, 12)).astype("uint8")[None]
    true[0, 10:] = IGNORED
    found = squares((2, 2), (14, 14))[None, ..., None].astype("float32")
    given = Gathered(DataInfo("masks", (24, 24, 1), 2, IGNORED), true, found)
    assert measured(ObjectAP(2, IGNORED), given) == 1


def test_objects_of_more_classes_match_only_within_their_class():
    true = squares((2, 2)).astype("uint8")[None] + 2 * squares((12, 12)).astype("uint8")[None]
    swapped = np.where(true > 0, 3 - true, 0)
    data = DataInfo("masks", (24, 24, 1), 3)
    for labels, expected in ((true, 1.0), (swapped, 0.0)):
        metric = ObjectAP(3)
        assert measured(metric, Gathered(data, true, np.eye(3, dtype="float32")[labels])) == expected
        assert metric.parts() == {1: expected, 2: expected}
