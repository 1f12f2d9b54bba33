"""Images with COCO annotations, drawn as class masks."""

import json

import numpy as np
import pytest

from scalestudy.util.errors import UserError

CATEGORIES = [{"id": 3, "name": "cell"}, {"id": 17, "name": "debris"}, {"id": 90, "name": "unused"}]


def square(image, category, left, **more):
    box = [left, 0, left + 2, 0, left + 2, 3, left, 3]
    return {
        "id": left + 100 * image,
        "image_id": image,
        "category_id": category,
        "segmentation": [box],
        **more,
    }


def content(*annotations, images=2, **changes):
    listed = [{"id": i, "file_name": f"i{i}.png", "height": 4, "width": 8} for i in range(1, images + 1)]
    return {"images": listed, "annotations": annotations, "categories": CATEGORIES, **changes}


@pytest.fixture
def coco(tmp_path, save):
    """Write two images of 4 x 8 pixels and the annotations under `name`."""

    def make(annotations, name="annotations.json", at="pictures"):
        root = tmp_path / "coco"
        for number in (1, 2):
            save(root / at / f"i{number}.png", np.full((4, 8), number, np.uint8))
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(json.dumps(annotations))
        return root

    return make


def test_objects_are_drawn_in_their_order_as_classes_without_gaps(coco, ready):
    prepared = ready(coco(content(square(1, 3, 0), square(1, 17, 1), square(2, 17, 6))))
    assert prepared.class_names == ("background", "cell", "debris")
    assert prepared.targets[0].tolist() == [[1, 2, 2, 0, 0, 0, 0, 0]] * 3 + [[0] * 8]
    assert prepared.targets[1, 0].tolist() == [0, 0, 0, 0, 0, 0, 2, 2]
    assert prepared.ignore is None
    assert "3 objects of 2 classes" in prepared.understood


def test_a_crowd_counts_in_nothing_and_hides_no_object(coco, ready):
    crowd = square(1, 3, 1) | {"iscrowd": 1, "segmentation": {"counts": [4, 12, 16], "size": [4, 8]}}
    prepared = ready(coco(content(square(1, 3, 0), crowd, square(2, 17, 0))))
    assert prepared.ignore == 255
    assert prepared.targets[0, 0].tolist() == [1, 1, 255, 255, 0, 0, 0, 0]


def test_annotations_for_each_split_lie_in_a_folder_of_their_own(coco, tree, listed):
    root = coco(content(square(1, 3, 0), images=1), "annotations/instances_train2017.json", "train2017")
    coco(content(square(1, 3, 0)), "annotations/instances_val2017.json", "val2017")
    (root / "annotations" / "captions_val2017.json").write_text(json.dumps(content()))
    found = listed(root)
    assert found.given == {"train": (0, 1), "validation": (1, 3)}
    assert [file.name for file in found.sources] == ["instances_train2017.json", "instances_val2017.json"]
    assert [sample.image.parent.name for sample in found.samples] == ["train2017", "val2017", "val2017"]
    assert "1 left out (in no list of annotated images): train2017/i2.png" in map(str, found.left_out)


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        (content(square(1, 3, 0), images=3), "i3.png not in"),
        (content(square(1, 5, 0)), "category 5"),
        (content(square(1, 3, 0), categories=[{"id": 3}]), "categories.0.name"),
        ({"images": [], "annotations": []}, "categories"),
        (content(square(1, 3, 0)) | {"images": [{"id": 1, "file_name": "i1.png", "height": "x"}]}, "height"),
        (content(), "0 in"),
    ],
)
def test_contradictions_are_named(coco, refused, annotations, told):
    assert told in refused(coco(annotations)).received


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (square(1, 3, 0) | {"segmentation": [[1, 2]]}, "a polygon of 2 numbers"),
        (square(1, 3, 0) | {"segmentation": None}, "for i1.png"),
        (square(1, 3, 0) | {"segmentation": {"counts": [5], "size": [4, 8]}}, "runs over 5 pixels"),
    ],
)
def test_an_annotation_that_cannot_be_drawn_is_named_with_its_image(coco, ready, annotation, told):
    with pytest.raises(UserError) as refused:
        ready(coco(content(annotation)))
    assert told in refused.value.received


def test_annotations_for_another_size_of_image_are_named(coco, ready, save):
    root = coco(content(square(1, 3, 0)))
    save(root / "pictures" / "i1.png", np.zeros((8, 4), np.uint8))
    with pytest.raises(UserError, match=r"annotations\.json \(for i1\.png\) for 4 x 8 of 8 x 4"):
        ready(root, image_size=(4, 8))


def test_the_annotations_of_a_validation_set_alone_are_refused(coco, refused):
    root = coco(content(square(1, 3, 0)), "annotations/instances_val2017.json", "val2017")
    error = refused(root)
    assert error.received == f"validation in {root}"
    assert "assign no splits" in error.action


def test_numbers_and_texts_may_both_be_ids(coco, ready):
    categories = [*CATEGORIES, {"id": "x", "name": "dust"}]
    annotated = content(square(1, "x", 0), square(2, 17, 0), categories=categories)
    assert ready(coco(annotated)).class_names == ("background", "debris", "dust")
