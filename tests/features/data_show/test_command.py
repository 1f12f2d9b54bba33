import json
from pathlib import Path

from PIL import Image


def test_a_source_is_shown_without_anything_being_prepared(
    call, tmp_path: Path
) -> None:
    code, text, _ = call("data", "show", "digits", "--out", tmp_path / "a.html")
    assert code == 0
    for words in ("one class for each image", "8 x 8", "1,797"):
        assert words in text
    assert (tmp_path / "a.html").read_text().count("<figure>") == 8
    code, text, _ = call("data", "show", "digits", "--format", "json")
    assert (code, json.loads(text)["count"]) == (0, 1797)


def test_a_study_is_shown_with_each_of_its_sets(call, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('task = "cnn"\n[sweep]\nworkers = 1\n"data.seed" = [1, 2]')
    code, text, _ = call("data", "show", study, "--format", "json")
    assert code == 0
    assert [record["facts"]["Split"] for record in json.loads(text)] == [
        "random, by the seed"
    ] * 2


def test_wrong_input_ends_with_2(call, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('task = "cnn"\n')
    for arguments in (
        ["show", "no/where"],
        ["show", "digits", "--format", "xml"],
        ["show", "digits", "--out", tmp_path / "a.pdf"],
        ["prepare", "digits", "--image-size", "0", "8"],
        ["prepare", study, "--image-size", "8", "8"],
    ):
        assert call("data", *arguments)[0] == 2


def test_damaged_files_are_named_together(call, tmp_path: Path) -> None:
    root, cache = tmp_path / "set", ("--cache", tmp_path / "c")
    for name in ("a/0.png", "a/1.png", "a/2.png", "b/0.png", "b/1.png", "b/2.png"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), int(name[2])).save(root / name)
    (root / "a" / "1.png").write_bytes(b"")
    (root / "b" / "2.png").write_text("no image")
    for command in (("data", "show", root), ("data", "prepare", root, *cache)):
        code, _, messages = call(*command)
        assert code == 2
        assert "a/1.png" in messages and "b/2.png" in messages
