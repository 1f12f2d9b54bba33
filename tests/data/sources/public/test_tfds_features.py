"""Which features of a set are the image and the target."""

import pytest

from scalestudy.data.sources.public.tfds import chosen, name_of
from scalestudy.util.errors import UserError

PETS = {
    "file_name": "Text",
    "head_bbox": "BBoxFeature",
    "image": "Image",
    "label": "ClassLabel",
    "segmentation_mask": "Image",
    "species": "ClassLabel",
}


@pytest.mark.parametrize(
    ("features", "wanted", "expected"),
    [
        ({"image": "Image", "label": "ClassLabel"}, None, ("image", "label", "classes")),
        (
            {"image": "Image", "image/filename": "Text", "label": "ClassLabel"},
            None,
            ("image", "label", "classes"),
        ),
        (
            {"image": "Image", "coarse_label": "ClassLabel", "label": "ClassLabel"},
            None,
            ("image", "label", "classes"),
        ),
        (PETS, None, ("image", "segmentation_mask", "masks")),
        (PETS, "species", ("image", "species", "classes")),
        (
            {"image_left": "Image", "segmentation_label": "Image"},
            None,
            ("image_left", "segmentation_label", "masks"),
        ),
        ({"image": "Image", "annotation": "Image"}, "annotation", ("image", "annotation", "masks")),
        ({"image": "Image", "truth": "LabeledImage"}, None, ("image", "truth", "masks")),
    ],
)
def test_image_and_target_are_found(features, wanted, expected):
    assert chosen(features, wanted, "tfds:x") == expected


@pytest.mark.parametrize(
    ("features", "wanted"),
    [
        ({"text": "Text", "label": "ClassLabel"}, None),
        ({"image": "Image", "a": "ClassLabel", "b": "ClassLabel"}, None),
        ({"image": "Image"}, None),
        ({"image": "Image", "label": "ClassLabel"}, "lable"),
        ({"left": "Image", "right": "Image", "label": "ClassLabel"}, None),
    ],
)
def test_what_is_not_clear_is_refused_with_the_features(features, wanted):
    with pytest.raises(UserError, match=next(iter(features))):
        chosen(features, wanted, "tfds:x")


@pytest.mark.parametrize(
    "name", ["mnist", "mnist:3.0.1", "mnist:3.*.*", "voc/2012:4.0.0", "huggingface:user__x"]
)
def test_names_are_those_of_tfds(name):
    asked = name_of(name)
    assert (asked.name, asked.folder, asked.feature) == (name, None, None)
    assert name_of(f"{name}@label").feature == "label"


@pytest.mark.parametrize("argument", [None, "", "../mnist", "a b", "mnist:3.0.1:x", "-x"])
def test_what_is_no_name_is_refused(argument):
    with pytest.raises(UserError, match="tfds:NAME"):
        name_of(argument)


def test_a_folder_without_a_set_is_refused(tmp_path):
    with pytest.raises(UserError, match="which has none"):
        name_of(str(tmp_path))
    with pytest.raises(UserError, match="does not exist"):
        name_of(str(tmp_path / "x"))
