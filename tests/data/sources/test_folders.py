"""A folder of images and masks: paired by name, of one size and depth, with meaningful mask values."""

import numpy as np
import pytest
from PIL import Image

from scalestudy.data.sources.folders import all_or_refused
from scalestudy.util.errors import UserError


def square(value, size=(6, 8), dtype=np.uint8):
    image = np.zeros(size, dtype)
    image[1:3, 1:3] = value
    return image


@pytest.mark.parametrize("values", [(0, 255), (0, 1), (255, 0), (1, 0)])
def test_binary_masks_of_0_and_255_or_0_and_1(mask_folder, ready, values):
    prepared = ready(mask_folder(values=values))
    assert prepared.classes == 2
    assert prepared.targets[0, [0, 5], 0].tolist() == [values[1] > 0, values[0] > 0]


def test_index_masks_give_a_class_each(mask_folder, ready, save):
    root = mask_folder(values=(0, 1))
    save(root / "masks" / "s2.png", square(2))
    prepared = ready(root)
    assert prepared.class_names == ("0", "1", "2")
    assert prepared.targets[2].max() == 2


def test_sixteen_bit_images_and_masks(mask_folder, ready, save):
    root = mask_folder()
    for i in range(4):
        save(root / "images" / f"s{i}.png", square(60_000 + i, dtype=np.uint16))
        save(root / "masks" / f"s{i}.png", square(65_535, dtype=np.uint16))
    prepared = ready(root)
    assert prepared.inputs.dtype == np.uint16
    assert prepared.scale == 1 / 65535
    assert prepared.inputs[3].max() == 60_003
    assert prepared.targets[3].max() == 1


def test_one_coloured_image_makes_the_set_coloured(mask_folder, ready, save):
    root = mask_folder()
    save(root / "images" / "s1.png", np.dstack([square(9), square(0), square(0)]))
    prepared = ready(root)
    assert prepared.input_shape == (6, 8, 3)
    assert (prepared.inputs[2] == 20).all()
    assert prepared.inputs[1, 1, 1].tolist() == [9, 0, 0]


def test_a_mask_of_another_size_is_named(mask_folder, refusal, save):
    root = mask_folder()
    save(root / "masks" / "s1.png", square(255, (8, 6)))
    received = refusal(root).received
    assert "masks/s1.png of 8 x 6" in received and "images/s1.png of 6 x 8" in received


@pytest.mark.parametrize("values", [(0, 3), (0, 128, 255), (7, 8)])
def test_unexpected_values_are_named_with_their_mask(
    mask_folder, refusal, save, values
):
    root = mask_folder(values=(0, 1))
    save(root / "masks" / "s2.png", np.resize(np.array(values, np.uint8), (6, 8)))
    error = refusal(root)
    assert f"masks/s2.png with values {', '.join(map(str, values))}" in error.received
    assert "0 and 255" in error.expected


def test_the_smear_of_a_jpeg_mask_gets_a_hint(mask_folder, refusal, save):
    root = mask_folder()
    (root / "masks" / "s2.png").unlink()
    save(root / "masks" / "s2.jpg", square(255), quality=60)
    error = refusal(root)
    assert (
        "masks/s2.jpg with values" in error.received and "JPEG smears" in error.action
    )


def test_binary_and_index_masks_do_not_mix(mask_folder, refusal, save):
    root = mask_folder(values=(0, 255))
    for value in (1, 2):
        save(root / "masks" / f"s{value}.png", square(value))
    received = refusal(root).received
    assert "masks/s0.png" in received and "masks/s2.png" in received


def test_eight_bits_among_sixteen_are_widened_and_told(mask_folder, ready, save):
    root = mask_folder()
    save(root / "images" / "s2.png", square(999, dtype=np.uint16))
    prepared = ready(root)
    assert (prepared.inputs.dtype, prepared.scale) == (np.uint16, 1 / 65535)
    assert prepared.inputs[3, 0, 0, 0] == 30 * 257
    assert prepared.inputs[2, 1, 1, 0] == 999
    assert prepared.remarks == (
        "images of 8-bit grey (3), 16-bit grey (1), stored as uint16 grey",
    )


def test_the_range_of_floats_is_told(tmp_path, ready, save):
    floats = tmp_path / "floats"
    for i in range(2):
        save(floats / "images" / f"s{i}.tif", square(2.5 * i - 0.5, dtype=np.float32))
        save(floats / "masks" / f"s{i}.png", square(1))
    (_, told) = ready(floats).remarks
    assert (
        "float32 as they are: models see -0.5 to 2;" in told
        and "value_range = [LOW, HIGH]" in told
    )
    scaled = ready(floats, value_range=(-1.0, 3.0))
    assert scaled.inputs.max() == 0.75 and scaled.scale == 1
    assert "with -1 to 3 as 0 to 1: models see 0.125 to 0.75" in scaled.remarks[1]


def test_sizes_that_differ_need_an_image_size(mask_folder, ready, refusal, save):
    root = mask_folder()
    for folder, value in (("images", 9), ("masks", 255)):
        save(root / folder / "s3.png", square(value, (12, 8)))
    error = refusal(root)
    assert "s0.png of 6 x 8" in error.received and "s3.png of 12 x 8" in error.received
    assert "`image_size = [6, 8]`" in error.action
    prepared = ready(root, image_size=(6, 8))
    assert prepared.ignore == 255
    assert (prepared.targets[3, :, :2] == 255).all()
    assert (prepared.targets[3, :, 2:6] <= 1).all()
    assert not (prepared.targets[0] == 255).any()


def turned(save, path, size, orientation):
    exif = Image.Exif()
    exif[274] = orientation
    return save(path, np.arange(np.prod(size), dtype=np.uint8).reshape(size), exif=exif)


@pytest.mark.parametrize(
    ("orientation", "size"), [(3, (6, 8)), (2, (6, 8)), (6, (6, 6))]
)
@pytest.mark.parametrize("name", ["s1.png", "s1.tif"])
def test_a_turned_photograph_whose_mask_may_lie_either_way_is_refused(
    mask_folder, refusal, save, orientation, size, name
):
    root = mask_folder()
    (root / "images" / "s1.png").unlink()
    turned(save, root / "images" / name, size, orientation)
    save(root / "masks" / "s1.png", square(255, size))
    received = refusal(root, image_size=(6, 8)).received
    assert f"images/{name}, which is turned by its EXIF orientation" in received
    assert "masks/s1.png" in received


def test_a_turned_photograph_whose_mask_is_upright_by_its_size_is_turned(
    mask_folder, ready, save
):
    root = mask_folder()
    turned(save, root / "images" / "s1.png", (8, 6), 6)
    save(root / "masks" / "s1.png", square(255))
    prepared = ready(root)
    assert (
        prepared.inputs[1, :, :, 0].tolist()
        == np.rot90(np.arange(48).reshape(8, 6), -1).tolist()
    )


@pytest.fixture
def voc(tmp_path, save):
    """Pascal VOC's layout: palette masks with a border of 255, one image for each of `values`."""

    def make(*values):
        for number, value in enumerate(values):
            save(tmp_path / "voc" / "JPEGImages" / f"{number}.jpg", square(9))
            mask = Image.fromarray(square(value))
            mask.putpixel((0, 0), 255)
            mask.putpalette(
                [channel for index in range(256) for channel in (index, 255 - index, 7)]
            )
            (tmp_path / "voc" / "SegmentationClass").mkdir(exist_ok=True)
            mask.save(tmp_path / "voc" / "SegmentationClass" / f"{number}.png")
        return tmp_path / "voc"

    return make


def test_palette_masks_may_lack_classes_and_ignore_255(voc, ready):
    prepared = ready(voc(0, 5, 7, 5))
    assert prepared.class_names == tuple("01234567") and prepared.ignore == 255
    assert [int(mask[1, 1]) for mask in prepared.targets] == [0, 5, 7, 5]
    assert (prepared.targets[:, 0, 0] == 255).all()


def test_classes_are_named_by_their_folders_in_order(class_folder, ready):
    prepared = ready(class_folder({"cat": 2, "ant": 3, "bee": 1}))
    assert prepared.kind == "classes"
    assert prepared.class_names == ("ant", "bee", "cat")
    assert prepared.targets.tolist() == [0, 0, 0, 1, 2, 2]
    assert prepared.targets.dtype == np.int32
    assert prepared.names[3] == "bee/0.png"


def test_folders_may_bring_the_split_and_lack_a_class_in_it(class_folder, ready):
    class_folder({"a": 2, "b": 3}, at="set/train")
    root = class_folder({"b": 2}, at="set/test").parent
    prepared = ready(root)
    assert prepared.given == {"train": (0, 5), "test": (5, 7)}
    assert prepared.targets.tolist() == [0, 0, 1, 1, 1, 1, 1]


def test_one_class_is_too_few(class_folder, refusal):
    assert "at least 2 classes" in refusal(class_folder({"a": 4})).expected


def refuse_odd(number):
    if number % 2:
        raise UserError("even numbers", str(number), "Halve them.")
    return number * 10


def test_all_that_are_refused_are_named_at_the_end():
    outcomes = all_or_refused(refuse_odd, range(120))
    assert [next(outcomes) for _ in range(60)] == list(range(0, 1200, 20))
    with pytest.raises(UserError) as refused:
        next(outcomes)
    assert refused.value.received.startswith("1; 3; 5;")
    assert refused.value.received.endswith("99 and 10 more")
    assert refused.value.action == "Halve them."


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_files_of_a_set_are_named_together(tmp_path, refusal, save):
    draw, root = np.random.default_rng(0), tmp_path / "noise"
    for i in range(6):
        save(
            root / "images" / f"{i}.jpg",
            draw.integers(0, 256, (60, 60), dtype=np.uint8),
        )
        save(
            root / "masks" / f"{i}.png",
            np.arange(3600, dtype=np.uint8).reshape(60, 60) // 64 % 2 * 255,
        )
    image, mask = root / "images" / "1.jpg", root / "masks" / "2.png"
    for file in (image, mask):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    save(root / "masks" / "4.png", np.array([[0, 128, 255] * 20] * 60, np.uint8))
    received = refusal(root).received
    assert f"{image}: " in received and f"{mask}: " in received
    assert received.endswith("and 1 files with other faults")
    for number, (content, told) in enumerate(
        [(b"", "an empty file"), (b"<html>", "no image inside")], 3
    ):
        (root / "images" / f"{number}.jpg").write_bytes(content)
        assert told in refusal(root).received
