"""Folders as they are published and as people name them, with small images that have real contents."""

import unicodedata

import numpy as np
import pytest

PHOTO, COLOUR, MASK, BLANK = "photo", "colour", "mask", "blank"


@pytest.fixture
def published(tmp_path, save):
    """Write files by name: a noisy photo of 16 x 16 pixels, a mask of 0 and 255, or one of given values."""
    draw = np.random.default_rng(7)

    def make(files, at="set"):
        for name, content in files.items():
            array = draw.integers(0, 256, (16, 16), dtype=np.uint8)
            if not isinstance(content, str):
                array = np.array(content, np.uint8)[array % len(content)]
            elif content == COLOUR:
                array = draw.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            elif content == MASK:
                array = np.where(array > 128, 255, 0).astype(np.uint8)
            save(tmp_path / at / name, array)
        return tmp_path / at

    return make


def paired_files(image, mask, numbers=range(4), values=MASK):
    files = {image.format(number): PHOTO for number in numbers}
    return files | {mask.format(number): values for number in numbers}


IDS = (12, 470, 3921, 5555)
CITY = "{}/aachen/aachen_00000{}_000019"


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("images_collective/{}.png", "masks_collective/{}.png"),
        ("img_all/{}.png", "mask_all/{}.png"),
        ("ISIC_Data/ISIC_{}.jpg", "ISIC_GroundTruth/ISIC_{}_segmentation.png"),
        (
            "ISIC2018_Task1-2_Training_Input/ISIC_{}.jpg",
            "ISIC2018_Task1_Training_GroundTruth/ISIC_{}_segmentation.png",
        ),
        ("imagesTr/case_00{}_0000.png", "labelsTr/case_00{}.png"),
        ("images/Abyssinian_{}.jpg", "annotations/trimaps/Abyssinian_{}.png"),
        ("Bilder/{}.png", "Masken/{}.png"),
        ("Bilder/probe_{}.png", "Masken/probe_{}_maske.png"),
        ("imágenes/{}.png", "máscaras/{}.png"),
        ("画像/{}.png", "正解/{}.png"),
        ("A/{}.png", "B/{}.png"),
        ("p1/A/{}.png", "p1/B/{}.png"),
        ("{}_sat.jpg", "{}_mask.png"),
        ("train/{}_sat.jpg", "train/{}_mask.png"),
    ],
)
def test_images_and_masks_are_found_by_their_contents_whatever_their_folders_are_called(
    published, paired, listed, image, mask
):
    root = published(paired_files(image, mask))
    assert paired(root) == [
        (image.format(number), mask.format(number)) for number in range(4)
    ]
    assert listed(root).kind == "masks" and listed(root).left_out == ()


def test_cityscapes_pairs_by_what_its_long_names_share_and_keeps_its_splits(
    published, paired, listed
):
    image, mask = (
        "leftImg8bit/{}/aachen/aachen_00000{}_000019_leftImg8bit.png",
        "gtFine/{}/aachen/aachen_00000{}_000019_gtFine_labelTrainIds.png",
    )
    splits = [(split, number) for split in ("train", "val") for number in range(2)]
    root = published(
        {image.format(*each): PHOTO for each in splits}
        | {mask.format(*each): (0, 1, 2) for each in splits}
    )
    assert paired(root) == [
        (image.format(*each), mask.format(*each)) for each in splits
    ]
    assert listed(root).given == {"train": (0, 2), "validation": (2, 4)}


def test_several_kinds_of_mask_for_each_image_are_refused_and_a_key_chooses_one(
    published, paired, refused
):
    at = "{}/train/bonn/bonn_{}_{}.png"
    numbers = range(3)
    kinds = ("gtFine_color", "gtFine_labelIds")
    files = {
        at.format("leftImg8bit", number, "leftImg8bit"): PHOTO for number in numbers
    }
    files |= {
        at.format("gtFine", number, kind): (0, 1)
        for number in numbers
        for kind in kinds
    }
    root = published(files)
    error = refused(root)
    assert "_gtFine_color" in error.received and "_gtFine_labelIds" in error.received
    chosen = {
        "images": "leftImg8bit/train/bonn/*",
        "masks": "gtFine/train/bonn/*_gtFine_labelIds.*",
    }
    assert all(f'{key} = "{value}"' in error.action for key, value in chosen.items())
    assert paired(root, **chosen)[2] == (
        "leftImg8bit/train/bonn/bonn_2_leftImg8bit.png",
        "gtFine/train/bonn/bonn_2_gtFine_labelIds.png",
    )


def test_several_channels_of_nnunet_are_refused_and_a_key_chooses_one(
    published, paired, refused
):
    files = {
        f"imagesTr/case_{case}_000{channel}.png": PHOTO
        for case in ("01", "02", "03")
        for channel in (0, 1)
    }
    root = published(
        files | {f"labelsTr/case_{case}.png": (0, 1) for case in ("01", "02", "03")}
    )
    error = refused(root)
    assert 'images = "imagesTr/*_0001.*"' in error.action
    assert len(paired(root, images="imagesTr/*_0000.*", masks="labelsTr/*")) == 3


def test_test_images_of_nnunet_without_labels_are_left_out(published, listed):
    root = published(
        paired_files("imagesTr/c_{}_0000.png", "labelsTr/c_{}.png")
        | {"imagesTs/d_0000.png": PHOTO}
    )
    assert listed(root).given == {"train": (0, 4)}
    assert [each.names for each in listed(root).left_out] == [("imagesTs/d_0000.png",)]


def drive(folder="training", numbers=range(21, 24)):
    files = {}
    for number in numbers:
        files[f"{folder}/images/{number:02}_{folder}.png"] = PHOTO
        files[f"{folder}/1st_manual/{number:02}_manual1.png"] = MASK
        files[f"{folder}/mask/{number:02}_{folder}_mask.png"] = MASK
    return files


def test_two_folders_of_masks_are_refused_by_name_and_patterns_pair_by_the_common_number(
    published, paired, refused
):
    root = published(drive())
    error = refused(root)
    assert (
        "training/1st_manual/*" in error.received
        and "training/mask/*" in error.received
    )
    assert (
        'images = "training/images/*" and masks = "training/1st_manual/*"'
        in error.action
    )
    assert paired(root, images="training/images/*", masks="training/1st_manual/*") == [
        (
            f"training/images/{number}_training.png",
            f"training/1st_manual/{number}_manual1.png",
        )
        for number in (21, 22, 23)
    ]


def test_patterns_over_folders_of_splits_keep_these(published, listed, paired, refused):
    root = published(drive() | drive("test", range(1, 4)))
    assert (
        "*/1st_manual/*" in refused(root).received
        and "*/mask/*" in refused(root).received
    )
    keys = {"images": "*/images/*", "masks": "*/1st_manual/*"}
    assert (
        f'images = "{keys["images"]}" and masks = "{keys["masks"]}"'
        in refused(root).action
    )
    assert listed(root, **keys).given == {"train": (0, 3), "test": (3, 6)}
    assert paired(root, **keys)[4] == (
        "test/images/02_test.png",
        "test/1st_manual/02_manual1.png",
    )


def test_classes_in_splits_that_repeat_their_folder_are_these_classes(
    published, labelled, listed
):
    files = {}
    for split in ("train", "test"):
        for number in range(3):
            for name in ("sea", "forest"):
                files[f"seg_{split}/seg_{split}/{name}/{split}{number}.jpg"] = PHOTO
    root = published(files | {"seg_pred/seg_pred/9.jpg": PHOTO})
    assert listed(root).classes == ["forest", "sea"]
    assert listed(root).given == {"train": (0, 6), "test": (6, 12)}
    assert labelled(root)["seg_test/seg_test/sea/test1.jpg"] == "sea"
    assert [each.names for each in listed(root).left_out] == [
        ("seg_pred/seg_pred/9.jpg",)
    ]


@pytest.mark.parametrize("around", ["archive", "archive/archive"])
def test_folders_around_the_classes_are_passed_over(published, listed, around):
    root = published(
        {
            f"{around}/{name}/{name}{number}.jpg": PHOTO
            for name in "ab"
            for number in range(2)
        }
    )
    assert listed(root).classes == ["a", "b"]


def test_splits_inside_of_classes_are_splits(published, listed):
    root = published(
        {
            f"{name}/{split}/{number}.jpg": PHOTO
            for name in "ab"
            for split in ("train", "val")
            for number in (1, 2)
        }
    )
    assert listed(root).classes == ["a", "b"]
    assert listed(root).given == {"train": (0, 4), "validation": (4, 8)}


def test_folders_that_nest_alike_have_two_readings_and_a_key_for_each(
    published, refused, listed
):
    root = published(
        {
            f"{site}/{name}/{site}{name}{number}.jpg": PHOTO
            for site in "AB"
            for name in ("ok", "bad")
            for number in (1, 2)
        }
    )
    error = refused(root)
    outer, inner = "^([^/]+)/", "^[^/]+/([^/]+)/"
    assert (
        f"label_pattern = '{outer}'" in error.action
        and f"label_pattern = '{inner}'" in error.action
    )
    assert listed(root, label_pattern=outer).classes == ["A", "B"]
    assert listed(root, label_pattern=inner).classes == ["bad", "ok"]


def nuclei(objects=3):
    files = {}
    for image in ("00ae65", "0acd2c", "fe11b3"):
        files[f"stage1_train/{image}/images/{image}.png"] = PHOTO
        files |= {
            f"stage1_train/{image}/masks/{image[:2]}{number}.png": BLANK
            for number in range(objects)
        }
    return files


def test_masks_of_objects_beside_each_image_are_joined(published, ready, listed, save):
    root = published(nuclei())
    for place, path in enumerate(sorted(root.glob("stage1_train/00ae65/masks/*.png"))):
        mask = np.zeros((16, 16), np.uint8)
        mask[4 * place : 4 * place + 2, 3:5] = 255
        save(path, mask)
    for other in ("0acd2c", "fe11b3"):
        for path in root.glob(f"stage1_train/{other}/masks/*.png"):
            save(path, np.zeros((16, 16), np.uint8))
    prepared = ready(root)
    assert (prepared.count, prepared.class_names) == (3, ("background", "foreground"))
    joined = prepared.targets[0]
    assert (
        joined.sum() == 12
        and joined[[0, 4, 8], 3].all()
        and not prepared.targets[1].any()
    )
    assert "9 objects in 3 images, joined" in prepared.understood


def test_an_object_mask_of_another_size_is_named(published, refusal, save):
    root = published(nuclei() | {name: MASK for name in nuclei() if "/masks/" in name})
    path = save(root / "stage1_train/0acd2c/masks/0a1.png", np.zeros((8, 16), np.uint8))
    assert str(path) in refusal(root).received


def test_classes_with_equal_numbers_stay_classes(published, listed):
    root = published(
        {
            f"{name}/{number}.jpg": PHOTO
            for name in ("cat", "dog")
            for number in range(6)
        }
    )
    assert listed(root).classes == ["cat", "dog"]


def test_grey_images_of_the_numbers_of_colour_images_may_be_maps_of_these(
    published, refused, listed
):
    files = {f"rgb/{number}.png": COLOUR for number in range(6)}
    root = published(files | {f"depth/{number}.png": PHOTO for number in range(6)})
    error = refused(root)
    assert (
        'images = "' in error.action and "label_pattern = '^([^/]+)/'" in error.action
    )
    assert listed(root, label_pattern="^([^/]+)/").classes == ["depth", "rgb"]


def test_equal_names_that_are_no_mere_numbers_are_refused_with_two_readings(
    published, refused, listed, paired
):
    names = ("anna", "berta", "carla")
    root = published(
        {
            f"{folder}/{name}.png": PHOTO
            for folder in ("before", "after")
            for name in names
        }
    )
    error = refused(root)
    assert 'images = "after/*" and masks = "before/*"' in error.action
    assert "label_pattern = '^([^/]+)/'" in error.action
    assert listed(root, label_pattern="^([^/]+)/").classes == ["after", "before"]
    assert len(paired(root, images="before/*", masks="after/*")) == 3


def test_several_folders_of_images_for_unnamed_masks_are_refused(published, refused):
    names = [
        f"{folder}/{number}.png" for folder in ("dapi", "gfp") for number in range(3)
    ]
    root = published(
        dict.fromkeys(names, PHOTO)
        | {f"Kerne/{number}.png": MASK for number in range(3)}
    )
    error = refused(root)
    assert 'images = "dapi/*" and masks = "Kerne/*"' in error.action
    assert 'images = "gfp/*" and masks = "Kerne/*"' in error.action


def test_a_class_of_two_with_few_values_is_refused_although_no_names_pair(
    published, refused, listed
):
    root = published(
        {f"scans/a{number}x.png": PHOTO for number in range(3)}
        | {f"zones/{name}.png": MASK for name in "pqr"}
    )
    error = refused(root)
    assert (
        "zones/ have few values" in error.received and "label_pattern" in error.action
    )
    assert listed(root, label_pattern="^([^/]+)/").classes == ["scans", "zones"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_pair_in_either_form_of_unicode(published, paired, form):
    other = {"NFC": "NFD", "NFD": "NFC"}[form]
    names = [f"Gefüge_{place}" for place in ("süd", "nord")]
    root = published(
        {f"images/{unicodedata.normalize(form, name)}.png": PHOTO for name in names}
        | {f"masks/{unicodedata.normalize(other, name)}.png": MASK for name in names}
    )
    assert len(paired(root)) == 2


def test_a_table_names_files_and_classes_in_either_form_of_unicode(published, listed):
    decomposed = unicodedata.normalize("NFD", "Käfer")
    root = published(
        {
            f"img/{unicodedata.normalize('NFC', 'Käfer')}{number}.png": PHOTO
            for number in range(3)
        }
    )
    rows = [
        (f"{decomposed}0", "Käfer"),
        (f"{decomposed}1", decomposed),
        (f"{decomposed}2", "other"),
    ]
    (root / "labels.csv").write_text(
        "file,label\n" + "\n".join(map(",".join, rows)), encoding="utf-8"
    )
    assert listed(root).classes == ["Käfer", "other"]


def test_classes_of_splits_agree_in_either_form_of_unicode(published, listed):
    forms = [unicodedata.normalize(form, "Öl") for form in ("NFC", "NFD")]
    root = published(
        {
            f"train/{forms[0]}/1.png": PHOTO,
            "train/x1/2.png": PHOTO,
            f"val/{forms[1]}/3.png": PHOTO,
        }
    )
    assert listed(root).classes == ["x1", "Öl"]


def test_a_few_other_names_among_numbers_leave_classes_classes(published, listed):
    files = {
        f"{name}/{number}.jpg": PHOTO for name in ("a", "b") for number in range(6)
    }
    files |= {f"a/{name}.jpg": PHOTO for name in (*range(6, 20), "copy", "thumb")}
    assert listed(published(files)).classes == ["a", "b"]


def test_few_masks_for_many_images_are_refused_and_no_classes(published, refused):
    files = {f"Bilder/{number}.png": PHOTO for number in range(8)}
    error = refused(
        published(files | {f"Masken/{number}.png": MASK for number in range(2)})
    )
    assert "6 images without a mask" in error.received


def test_letters_are_classes_although_x_and_y_may_name_images_and_masks(
    published, listed
):
    root = published(
        {
            f"{letter}/{letter}{number}.png": PHOTO
            for letter in "wxyz"
            for number in range(2)
        }
    )
    assert listed(root).classes == ["w", "x", "y", "z"]
