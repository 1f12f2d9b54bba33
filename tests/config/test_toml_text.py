import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.file import study_toml
from scalestudy.config.key_lines import KeyLines
from scalestudy.config.parse import parse_study
from scalestudy.config.toml_text import toml_line, toml_value

NUMBERED = """
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
    lines = KeyLines.read(NUMBERED, "study.toml").lines
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
        'task = "cnn"\n[sweep]\nbatch_size = [1]\ntrain.xla = true\n[launch]\non = "x"',
        "f.toml",
    )
    assert place.of("train.batch_size") == " (f.toml, line 3)"
    assert place.of("train.xla") == " (f.toml, line 4)"
    assert place.of("launch.site", "launch.on") == " (f.toml, line 6)"
    assert place.of("data") == " (f.toml)"
    assert KeyLines().of("task") == ""


TEXT = """
name = "all of it"
task = "cnn"
[data]
source = "/a/$$b \\"c\\""
tile = [32, 16]
[train]
epochs = 3
xla = true
learning_rate = 1e-5
[sweep]
strategy = ["virtual", "single"]
workers = 1
"train.batch_size" = [8, 16]
image_size = [[8, 8], [16, 16]]
[launch]
device = "cpu"
"""


def test_a_dumped_study_reads_as_the_same_study() -> None:
    study = parse_study(TEXT, Path("a.toml"))
    assert parse_study(study_toml(study), Path("b.toml")) == study


JSON = st.recursive(
    st.booleans()
    | st.floats(allow_nan=False)
    | st.integers(-(10**9), 10**9)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(JSON)
def test_values_are_written_in_toml(value):
    line = toml_line("key", value)
    assert "\n" not in line
    assert tomllib.loads(line) == {"key": value}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_keys_are_quoted_where_they_must_be(key):
    assert tomllib.loads(toml_line(key, 1)) == {key: 1}


def test_what_a_person_reads_is_plain():
    assert toml_line("train.batch_size", [8, 16]) == '"train.batch_size" = [8, 16]'
    assert (
        toml_line("proxies", {"http_proxy": "a", "none": []})
        == 'proxies = { http_proxy = "a", none = [] }'
    )
    assert toml_value((1e-05, True, "größer")) == '[1e-05, true, "größer"]'


def test_what_toml_does_not_know_is_refused():
    with pytest.raises(TypeError):
        toml_value(None)
