"""Which features of a set are its image and its target."""

import json

import pytest

from scalestudy.data.sources.public.tfds import chosen, request_of
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
    asked = request_of(name)
    assert (asked.name, asked.folder, asked.feature) == (name, None, None)
    assert request_of(f"{name}@label").feature == "label"


@pytest.mark.parametrize("argument", [None, "", "../mnist", "a b", "mnist:3.0.1:x", "-x"])
def test_what_is_no_name_is_refused(argument):
    with pytest.raises(UserError, match="tfds:NAME"):
        request_of(argument)


def test_a_folder_without_a_set_is_refused(tmp_path):
    with pytest.raises(UserError, match="which has none"):
        request_of(str(tmp_path))
    with pytest.raises(UserError, match="does not exist"):
        request_of(str(tmp_path / "x"))


def test_what_a_folder_holds_is_read_from_its_files(tmp_path, monkeypatch):
    folder = tmp_path / "pets" / "4.0.0"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text("{}")
    features = {name: {"pythonClassName": f"tensorflow_datasets.x.{kind}"} for name, kind in PETS.items()}
    (folder / "features.json").write_text(json.dumps({"featuresDict": {"features": features}}))
    asked = request_of(str(folder))
    assert asked.shown == "pets/4.0.0"
    assert asked.kind() == "masks"
    assert request_of(f"{folder}@label").kind() == "classes"
    # Where TFDS keeps it, so it is for its name, without TFDS.
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    assert [
        request_of(name).kind() for name in ("pets", "pets:4.0.0", "pets:4.*.*@label", "pets:3.0.0", "dogs")
    ] == [
        *("masks", "masks", "classes", None, None),
    ]
    (folder / "features.json").write_text("{}")
    with pytest.raises(UserError, match=r"features\.json"):
        request_of(str(folder)).kind()


def test_of_several_versions_the_highest_tells(tmp_path, monkeypatch):
    for version, kind in (("9.0.0", "Text"), ("10.0.0", "ClassLabel")):
        (tmp_path / "set" / version).mkdir(parents=True)
        features = {"image": {"pythonClassName": "x.Image"}, "label": {"pythonClassName": f"x.{kind}"}}
        stored = json.dumps({"featuresDict": {"features": features}})
        (tmp_path / "set" / version / "features.json").write_text(stored)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    assert request_of("set").kind() == "classes"
