import numpy as np
import pytest

from gathered import IGNORED, gathered, measured
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.image_metrics import BoundaryF1, boundary, disk_of

pytestmark = pytest.mark.engine


@pytest.fixture
def ndimage():
    from scipy import ndimage

    return ndimage


def edge(mask, valid, ndimage):
    """By SciPy: a pixel with a neighbour of another class; what is beyond or ignored is no neighbour."""
    inside = ndimage.binary_erosion(mask | ~valid, border_value=1)
    return mask & valid & ~inside


def f1(true, found, valid, tolerance, ndimage):
    """By distances to the nearest pixel of the other boundary; None without any."""
    one, two = edge(true, valid, ndimage), edge(found, valid, ndimage)
    if not one.any() and not two.any():
        return None
    if not one.any() or not two.any():
        return 0.0
    to_one, to_two = (ndimage.distance_transform_edt(~each) for each in (one, two))
    precision, recall = (to_one[two] <= tolerance).mean(), (to_two[one] <= tolerance).mean()
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@pytest.mark.parametrize("tolerance", [0, 1.5, 2, 3])
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
    assert measured(BoundaryF1(classes, IGNORED, tolerance), given) == pytest.approx(expected)


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
