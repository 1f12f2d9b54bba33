"""The engine of a study, from its file to its points."""

from pathlib import Path

import pytest

from scalestudy.study.expand import expand
from scalestudy.study.parse import parse_study
from scalestudy.study.template import study_template, study_toml
from scalestudy.util.errors import UserError

FILE = Path("study.toml")


def test_it_is_tensorflow_unless_said_otherwise_and_every_point_names_it():
    study = parse_study('task = "cnn"\n', FILE)
    assert study.engine == "tensorflow" and study.sweep.strategy == ("native",)
    assert {point.engine for point in expand(study, gpus=0, cores=4)} == {"tensorflow"}
    assert {point.traits.engine for point in expand(study, gpus=0, cores=4)} == {"tensorflow"}


def test_it_is_read_as_it_is_written_and_stands_in_the_template():
    study = parse_study('task = "cnn"\nengine = "tensorflow"\n', FILE)
    assert parse_study(study_toml(study), FILE).engine == "tensorflow"
    assert '\n# engine = "tensorflow"\n' in study_template()


@pytest.mark.parametrize("value", ['"tensorflaw"', "1", "[]"])
def test_another_is_refused_with_its_line(value):
    with pytest.raises(UserError) as caught:
        parse_study(f'task = "cnn"\nengine = {value}\n', FILE)
    assert "line 2" in str(caught.value) and '"tensorflow"' in caught.value.expected
