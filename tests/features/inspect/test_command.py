import json
from pathlib import Path

import pytest
from PIL import Image


def test_a_source_is_shown_without_anything_being_prepared(call, tmp_path: Path) -> None:
    command = ("data", "show", "digits", "--cache", tmp_path / "c")
    code, text, _ = call(*command, "--out", tmp_path / "a.html")
    assert code == 0
    for words in ("one class for each image", "all 1,797 images", "8 x 8", "1,797"):
        assert words in text
    assert (tmp_path / "a.html").read_text().count("<figure>") == 8
    code, text, _ = call(*command, "--format", "json")
    assert (code, json.loads(text)["count"]) == (0, 1797)
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_a_study_is_shown_as_it_reads_its_data(call, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('task = "cnn"\n[data]\ncache = "c"\n[sweep]\nworkers = 1\nimage_size = [[8, 8], [4, 4]]')
    assert call("data", "prepare", study)[0] == 0
    code, text, _ = call("data", "show", study, "--format", "json")
    assert code == 0
    sets = json.loads(text)
    assert len(sets) == 2
    assert sets[0]["splits"] == {"train": 1438, "validation": 359}
    assert "as prepared in" in sets[0]["basis"]


def test_wrong_input_ends_with_2(call, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('task = "cnn"\n')
    for arguments in (
        ["no/where"],
        ["digits", "--format", "xml"],
        ["digits", "--out", tmp_path / "a.pdf"],
        ["digits", "--image-size", "0", "8"],
        [study, "--image-size", "8", "8"],
    ):
        assert call("data", "show", *arguments)[0] == 2


def test_a_source_with_damaged_files_is_shown_and_prepared_without_them(call, tmp_path: Path) -> None:
    root, cache = tmp_path / "set", ("--cache", tmp_path / "c")
    for name in ("a/0.png", "a/1.png", "a/2.png", "b/0.png", "b/1.png", "b/2.png"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), int(name[2])).save(root / name)
    (root / "a" / "1.png").write_bytes(b"")
    (root / "b" / "2.png").write_text("no image")
    show = ("data", "show", root, *cache, "--format", "json")
    for command in (show, ("data", "prepare", root, *cache)):
        code, _, messages = call(*command)
        assert code == 2
        assert "a/1.png" in messages and "b/2.png" in messages and "--skip-bad" in messages
    code, text, _ = call(*show, "--skip-bad")
    assert code == 0 and json.loads(text)["count"] == 4
    code, text, messages = call("data", "prepare", root, *cache, "--skip-bad")
    assert code == 0 and "3 training samples" in text
    assert "1 left out (damaged: an empty file): a/1.png" in messages.replace("\n", " ")
    code, text, _ = call(*show, "--skip-bad")
    assert code == 0 and "as prepared in" in json.loads(text)["basis"]
