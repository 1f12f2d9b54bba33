from pathlib import Path


def test_a_source_is_prepared_ahead(call, tmp_path: Path) -> None:
    code, text, _ = call("data", "prepare", "digits", "--cache", tmp_path / "c", "--image-size", "16", "16")
    assert code == 0
    assert "digits: 1438 training samples" in text
    assert len(list((tmp_path / "c").glob("*/meta.json"))) == 1


def test_every_data_set_of_a_study_is_prepared_ahead(call, study: Path) -> None:
    study.write_text(
        'task = "cnn"\n[data]\ncache = "c"\n[sweep]\nworkers = 500\nimage_size = [[8, 8], [4, 4]]'
    )
    code, text, _ = call("data", "prepare", study)
    assert code == 0
    assert len(text.splitlines()) == 2
    assert len(list((study.parent / "c").glob("*/meta.json"))) == 2


def test_wrong_input_ends_with_2(call, study: Path, tmp_path: Path) -> None:
    for arguments in (
        ["no/where", "--cache", tmp_path / "c"],
        ["digits", "--cache", tmp_path / "c", "--image-size", "0", "8"],
        [study, "--image-size", "8", "8"],
        [tmp_path / "none.toml"],
    ):
        assert call("data", "prepare", *arguments)[0] == 2
