import json
from pathlib import Path


def test_a_source_is_shown_without_anything_being_prepared(call, tmp_path: Path) -> None:
    code, text, _ = call("data", "show", "digits", "--cache", tmp_path / "c", "--html", tmp_path / "a.html")
    assert code == 0
    for words in ("images with one class each", "all 1,797 images", "8 x 8 (1,797)", "1,797"):
        assert words in text
    assert "▀" not in text
    assert (tmp_path / "a.html").read_text().count("<figure>") == 8
    assert not (tmp_path / "c").exists()


def test_json_is_one_object(call, tmp_path: Path) -> None:
    code, text, _ = call("data", "show", "digits", "--cache", tmp_path / "c", "--format", "json")
    assert code == 0
    assert json.loads(text)["count"] == 1797


def test_a_study_is_shown_as_it_reads_its_data(call, study: Path) -> None:
    study.write_text('task = "cnn"\n[data]\ncache = "c"\n[sweep]\nworkers = 1\nimage_size = [[8, 8], [4, 4]]')
    assert call("data", "prepare", study)[0] == 0
    code, text, _ = call("data", "show", study, "--format", "json")
    assert code == 0
    sets = json.loads(text)
    assert len(sets) == 2
    assert sets[0]["splits"] == {"train": 1438, "validation": 359}
    assert "as prepared in" in sets[0]["basis"]


def test_wrong_input_ends_with_2(call, study: Path, tmp_path: Path) -> None:
    for arguments in (
        ["no/where"],
        ["digits", "--format", "xml"],
        ["digits", "--html", tmp_path / "a.pdf"],
        ["digits", "--image-size", "0", "8"],
        [study, "--image-size", "8", "8"],
    ):
        assert call("data", "show", *arguments)[0] == 2
