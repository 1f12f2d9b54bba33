import numpy as np
import pytest

from gathered import IGNORED, Gathered, gathered, measured
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.image_metrics import THRESHOLDS, BoundaryF1, ObjectAP, boundary, disk_of, object_score

pytestmark = pytest.mark.engine


@pytest.fixture
def ndimage():
    from scipy import ndimage

    return ndimage


def edge(mask, valid, ndimage):
    """With SciPy: a pixel with a neighbour of another class; pixels outside or ignored do not count."""
    inside = ndimage.binary_erosion(mask | ~valid, border_value=1)
    return mask & valid & ~inside


def f1(true, found, valid, tolerance, ndimage):
    """From distances to the nearest pixel of the other boundary; None if there is no boundary."""
    one, two = edge(true, valid, ndimage), edge(found, valid, ndimage)
    if not one.any() and not two.any():
        return None
    if not one.any() or not two.any():
        return 0.0
    to_one, to_two = (ndimage.distance_transform_edt(~each) for each in (one, two))
    precision, recall = (to_one[two] <= tolerance).mean(), (to_two[one] <= tolerance).mean()
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@pytest.mark.parametrize("tolerance", [0, 1.5, 2])
@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_that_of_distances_between_boundaries(classes, tolerance, ndimage):
    given = gathered("masks", classes, seed=5)
    draw = np.random.default_rng(6)
    blobs = np.stack(
        [ndimage.gaussian_filter(draw.normal(size=(10, 12, classes)), (2, 2, 0)) for _ in range(9)]
    )
    found = blobs.argmax(-1)
    outputs = (np.eye(classes)[found][..., 1:] if classes == 2 else np.eye(classes)[found]).astype("float32")
    given = given._replace(outputs=outputs)
    valid = given.targets != IGNORED
    each = [
        [
            f1(t == c, p == c, v, tolerance, ndimage)
            for t, p, v in zip(given.targets, found, valid, strict=True)
        ]
        for c in range(1 if classes == 2 else 0, classes)
    ]
    expected = np.mean([np.mean([value for value in values if value is not None]) for values in each])
    assert measured(BoundaryF1(classes, IGNORED, tolerance=tolerance), given) == pytest.approx(expected)


def test_a_square_that_is_moved_by_2_pixels_is_found_within_2_and_not_within_1():
    true = np.zeros((1, 20, 20), "uint8")
    true[0, 5:12, 5:12] = 1
    moved = np.roll(true, 2, axis=2)[..., None].astype("float32")
    given = gathered("masks", 2)._replace(data=DataInfo("masks", (20, 20, 1), 2), targets=true, outputs=moved)
    assert measured(BoundaryF1(tolerance=2), given) == 1
    assert 0 < measured(BoundaryF1(tolerance=1), given) < 1
    assert measured(BoundaryF1(tolerance=0), given) < measured(BoundaryF1(tolerance=1), given)


def test_the_edge_of_the_image_is_no_boundary():
    whole = np.ones((1, 6, 6, 1), bool)
    assert np.asarray(boundary(whole, None)).sum() == 0
    whole[0, 3, 3] = False
    assert np.asarray(boundary(whole, None)).sum() == 4


def test_the_tolerance_is_a_distance_between_centres():
    assert disk_of(0).tolist() == [[1]]
    assert disk_of(1.4).sum() == 5
    assert disk_of(2**0.5).sum() == 9
    assert disk_of(2).sum() == 13


def squares(*corners, size=4, shape=(24, 24)):
    mask = np.zeros(shape, bool)
    for y, x in corners:
        mask[y : y + size, x : x + size] = True
    return mask


def by_definition(true, found):
    """As in the Data Science Bowl 2018: each pair of objects in turn."""
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


@pytest.mark.parametrize("seed", range(4))
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
