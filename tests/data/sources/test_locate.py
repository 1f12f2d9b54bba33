"""The folder of a source: paths that cannot be read end in a message, not in an OSError."""

import os
import shutil
from pathlib import Path

import pytest

from data_settings import data_of
from scalestudy.data.sources.locate import find_source, folder_of
from scalestudy.util.errors import UserError


def refusal(source, base=Path()):
    with pytest.raises(UserError) as refused:
        find_source(data_of(source), base=base)
    return refused.value


def test_a_link_to_itself(tmp_path):
    (tmp_path / "set").symlink_to("set")
    assert "does not exist" in refusal("set", tmp_path).received
    assert folder_of("set", tmp_path) is None


def test_a_folder_that_may_not_be_entered(mask_folder, monkeypatch):
    root = mask_folder()
    if os.geteuid() == 0:  # root can enter every folder

        def denied(self):
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(Path, "exists", denied)
    root.parent.chmod(0)
    try:
        assert "ermission denied" in refusal(root).received
    finally:
        root.parent.chmod(0o755)


def test_a_folder_that_goes_while_it_is_listed(class_folder, monkeypatch):
    from scalestudy.data.sources.layouts import classes

    root, listed = class_folder({"a": 2, "b": 2}), classes.image_files

    def image_files(folder, left):
        if folder.name == "a":
            shutil.rmtree(root / "b")
        return listed(folder, left)

    monkeypatch.setattr(classes, "image_files", image_files)
    assert f"{root / 'b'}: No such file" in refusal(root).received


def test_the_folder_of_a_source_is_seen_through_links(mask_folder, tmp_path):
    root = mask_folder()
    (tmp_path / "linked").symlink_to(root)
    assert folder_of("linked", tmp_path) == folder_of(str(root), Path()) == root.resolve()
    assert folder_of("indents:8", tmp_path) is None
    assert folder_of("none.npz", tmp_path) is None
