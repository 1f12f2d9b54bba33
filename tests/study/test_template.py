import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.study.catalog import TASKS, resolved_data, resolved_train, task_defaults
from scalestudy.study.file import Study
from scalestudy.study.keys import SECTIONS
from scalestudy.study.parse import parse_study
from scalestudy.study.settings import DataSettings
from scalestudy.study.template import study_template, study_toml, toml_line, toml_value

FILE = Path("study.toml")
NEEDS = {
    "tile",
    "overlap",
    "stack",
    "value_range",
    "source",
    "validation",
    "read",
    "clip_norm",
    "folds",
    "layout",
    "images",
    "masks",
    "colours",
    "label_pattern",
    "group_pattern",
    "file_column",
    "label_column",
    "mask_column",
    "split_column",
    "group_column",
    "image_size",
    "cache",
    "reference_batch",
    "steps_per_call",
    "site",
    "deterministic",
    "environments",
    "loss",
    "metrics",
    "class_weights",
    "weights",
    "input_scaling",
}
"""Keys without a default, shown with an example."""


@pytest.mark.parametrize("task", TASKS.built_in())
def test_the_written_file_reads_as_the_defaults(task: str) -> None:
    assert parse_study(study_template(task), FILE) == parse_study(f'task = "{task}"', FILE)


@pytest.mark.parametrize("task", TASKS.built_in())
def test_uncommented_it_still_reads_and_says_the_same(task: str) -> None:
    opened = re.sub(r"(?m)^# (\w+ = )", r"\1", study_template(task))
    study = parse_study(opened, FILE)
    plain = Study(name="study", task=task)
    for key, value in resolved_train(task, plain.train):
        assert key in NEEDS or getattr(study.train, key) == value
    own = DataSettings() if task_defaults(task).source else DataSettings(source=study.data.source)
    for key, value in resolved_data(task, own):
        assert key in NEEDS - {"source"} or getattr(study.data, key) == value


def test_every_key_and_the_whole_of_its_docstring_is_there() -> None:
    text = " ".join(line.removeprefix("#").strip() for line in study_template().splitlines())
    for model in SECTIONS.values():
        for key, field in model.model_fields.items():
            assert f"{key} = " in text
            assert " ".join((field.description or "nothing said").split()) in text


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
        toml_line("proxies", {"http_proxy": "a", "none": []}) == 'proxies = { http_proxy = "a", none = [] }'
    )
    assert toml_value((1e-05, True, "größer")) == '[1e-05, true, "größer"]'


def test_what_toml_does_not_know_is_refused():
    with pytest.raises(TypeError):
        toml_value(None)
