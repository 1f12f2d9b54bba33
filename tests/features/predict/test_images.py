"""What is predicted of what was named, and under which name it is written."""

import numpy as np
import pytest
from PIL import Image

from scalestudy.features.predict.inputs import files_of
from scalestudy.util.errors import UserError


def write(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(path)
    return path


def names(*given):
    return [item.name for item in files_of([str(path) for path in given])[0]]


def test_a_folder_gives_its_images_wherever_they_lie_below_it(tmp_path):
    for name in ("b.png", "a.tif", "more/c.jpg", ".hidden/d.png"):
        write(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    assert names(tmp_path) == ["a", "b", "more/c"]


def test_masks_beside_images_are_left_out(tmp_path):
    write(tmp_path / "images" / "a.png")
    write(tmp_path / "masks" / "a.png")
    items, left = files_of([str(tmp_path)])
    assert [item.name for item in items] == ["images/a"]
    assert left == [tmp_path / "masks"]
    assert names(tmp_path / "masks") == ["a"]  # asked for by name, they are images


def test_an_image_that_is_named_twice_is_predicted_once(tmp_path):
    file = write(tmp_path / "a.png")
    (tmp_path / "link.png").symlink_to(file)
    assert len(names(file, tmp_path, file)) == 1


def test_names_that_meet_are_told_apart(tmp_path):
    one, other = write(tmp_path / "x" / "a.png"), write(tmp_path / "x" / "a.jpg")
    assert names(one, other) == ["a.png", "a.jpg"]
    third = write(tmp_path / "y" / "a.png")
    assert names(one, third) == ["x/a.png", "y/a.png"]


def test_names_that_cannot_be_told_apart_are_refused(tmp_path):
    one, other = write(tmp_path / "p" / "x" / "a.png"), write(tmp_path / "q" / "x" / "a.png")
    with pytest.raises(UserError, match=r"p/x/a.png and .*q/x/a.png, which would all be written as x/a.png"):
        files_of([str(one), str(other)])


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.png, which does not exist"):
        files_of([str(tmp_path / "nothing.png")])
    with pytest.raises(UserError, match="without any"):
        files_of([str(tmp_path)])
