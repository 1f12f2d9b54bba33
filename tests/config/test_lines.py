from scalestudy.config.toml_text import KeyLines

TEXT = """
task = "cnn"
[train] # how
  epochs = 3
"x y" . z = [
  1,
  2]
[ data.deep ]
"key" = { a = 1 }
"""


def test_a_key_stands_on_the_line_that_names_it() -> None:
    lines = KeyLines.read(TEXT, "study.toml").lines
    assert lines == {
        "task": 2,
        "train": 3,
        "train.epochs": 4,
        "train.x y.z": 5,
        "train.x y": 5,
        "data.deep": 8,
        "data": 8,
        "data.deep.key": 9,
    }


def test_windows_line_ends_count_once() -> None:
    assert KeyLines.read("a = 1\r\n\r\n[b]\r\nc = 2 # x\r\n", "f").lines["b.c"] == 4


def test_a_key_is_found_where_it_is_swept_or_set() -> None:
    place = KeyLines.read(
        'task = "cnn"\n[sweep]\nbatch_size = [1]\ntrain.xla = true\n[launch]\non = "x"', "f.toml"
    )
    assert place.of("train.batch_size") == " (f.toml, line 3)"
    assert place.of("train.xla") == " (f.toml, line 4)"
    assert place.of("launch.site", "launch.on") == " (f.toml, line 6)"
    assert place.of("data") == " (f.toml)"
    assert KeyLines().of("task") == ""
