"""The files of a folder of samples: taken, left out and told, or refused before anything is opened."""

import os
import socket

import numpy as np
import pytest
from PIL import Image

from scalestudy.data.sources.files import image_files
from scalestudy.data.sources.left_out import NO_IMAGE, SYSTEM, LeftOut, Leftovers
from scalestudy.util.errors import UserError

DOT = np.zeros((1, 1), np.uint8)


def listed(folder):
    left = Leftovers(folder)
    return [file.name for file in image_files(folder, left)], left.found()


def refusal(folder):
    with pytest.raises(UserError) as refused:
        image_files(folder)
    return refused.value


@pytest.fixture
def folder(class_folder):
    return class_folder({"a": 2}) / "a"


@pytest.mark.parametrize(
    "name", [".DS_Store", "._0.png", "Thumbs.db", "ehthumbs.db", "desktop.ini", ".hidden.png"]
)
def test_files_of_the_system_are_left_out_and_told(folder, name):
    (folder / name).write_bytes(b"\0")
    assert listed(folder) == (["0.png", "1.png"], (LeftOut(SYSTEM, 1, (name,)),))


@pytest.mark.parametrize("name", ["__MACOSX", ".ipynb_checkpoints", "@eaDir", "lost+found"])
def test_folders_of_the_system_are_left_out_with_the_images_in_them(folder, save, name):
    save(folder / name / "0.png", DOT)
    assert listed(folder) == (["0.png", "1.png"], (LeftOut(SYSTEM, 1, (f"{name}/",)),))


def test_what_is_no_image_is_left_out_and_told(folder):
    (folder / "notes.txt").write_text("seen")
    (folder / "logs").mkdir()
    os.mkfifo(folder / "pipe")
    assert listed(folder)[1] == (LeftOut(NO_IMAGE, 3, ("logs/", "notes.txt", "pipe")),)


def test_many_are_counted_and_the_first_are_named(folder):
    for i in range(9):
        (folder / f"{i}.txt").touch()
    (left,) = listed(folder)[1]
    assert str(left) == "9 left out (no image by their name): 0.txt, 1.txt, 2.txt, 3.txt, 4.txt, ..."


def test_names_with_control_characters_are_shown_harmless(folder):
    (folder / "a\x1b[2J\n.txt").touch()
    os.close(os.open(os.fsencode(folder) + b"/\xff.txt", os.O_CREAT))
    (left,) = listed(folder)[1]
    assert str(left) == r"2 left out (no image by their name): a\x1b[2J\n.txt, \udcff.txt"


def test_capitals_two_underscores_and_links_are_taken(folder, save, tmp_path):
    save(folder / "__B.PNG", DOT)
    (folder / "c.png").symlink_to(save(tmp_path / "elsewhere" / "c.png", DOT))
    assert listed(folder) == (["0.png", "1.png", "__B.PNG", "c.png"], ())


def test_images_in_folders_inside_are_refused_and_named(folder, save):
    for name in ("x.png", "y.jpg", "z.txt"):
        save(folder / "deep" / "er" / name, DOT, format="PNG")
    error = refusal(folder)
    assert f"{folder / 'deep'}/ (2)" in error.received
    assert "Move the images up" in error.action


def test_a_pipe_under_an_images_name_is_refused_without_opening_it(folder):
    os.mkfifo(folder / "2.png")
    assert f"{folder / '2.png'} (a named pipe)" in refusal(folder).received


def test_a_socket_a_device_and_a_broken_link_are_refused_together(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("2.png")
    (folder / "3.png").symlink_to("/dev/null")
    (folder / "4.png").symlink_to("gone.png")
    received = refusal(folder).received
    assert "2.png (a socket)" in received
    assert "3.png (a device)" in received
    assert "4.png (a link to gone.png, which does not exist)" in received


def test_a_few_of_formats_that_are_not_read_are_left_out_and_named(folder):
    for name in ("x.heic", "y.dcm"):
        (folder / name).touch()
    names, left = listed(folder)
    assert names == ["0.png", "1.png"]
    assert [str(each) for each in left] == ["2 left out (of a format that is not read): x.heic, y.dcm"]


def test_a_folder_mostly_of_formats_that_are_not_read_is_refused_by_name(folder):
    for name in ("x.heic", "y.dcm", "z.nii"):
        (folder / name).touch()
    error = refusal(folder)
    assert f"{folder / 'x.heic'}, {folder / 'y.dcm'}, {folder / 'z.nii'}" in error.received
    assert "a few among many images are left out" in error.action


def test_stills_of_gif_webp_and_bmp_are_taken_and_animations_left_out(folder, save):
    for name in ("a.gif", "b.webp", "c.BMP"):
        save(folder / name, DOT)
    second = [Image.fromarray(DOT + 200)]
    save(folder / "moving.gif", DOT, save_all=True, append_images=second)
    names, left = listed(folder)
    assert names == ["0.png", "1.png", "a.gif", "b.webp", "c.BMP"]
    assert [str(each) for each in left] == ["1 left out (animated, not one image): moving.gif"]


def test_a_folder_without_images_is_refused_saying_what_it_holds(tmp_path):
    (tmp_path / "notes.txt").touch()
    assert "notes.txt" in refusal(tmp_path).received
