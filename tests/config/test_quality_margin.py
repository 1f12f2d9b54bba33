import math
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.differences import differences
from scalestudy.config.file import QualityMargin, Study, study_toml
from scalestudy.config.parse import parse_study
from scalestudy.util.errors import UserError

FILE = Path("study.toml")


@pytest.mark.parametrize(
    ("given_value", "margin"),
    [
        (0.01, QualityMargin(0.01)),
        (2, QualityMargin(2.0)),
        ("2 %", QualityMargin(0.02, relative=True)),
        ("0.7%", QualityMargin(0.007, relative=True)),
    ],
)
def test_a_margin_is_absolute_or_a_percentage(given_value, margin):
    assert QualityMargin.parse(given_value) == margin


@pytest.mark.parametrize(
    "wrong",
    [0, -0.1, math.inf, math.nan, 10**400, True, None, "0.01", "0 %", "-2 %", "%", [1], date(2020, 1, 1)],
)
def test_anything_else_is_refused(wrong):
    with pytest.raises(ValueError, match="above 0"):
        QualityMargin.parse(wrong)


@given(st.floats(1e-9, 1e6), st.booleans())
def test_a_margin_reads_as_it_was_written(value: float, relative: bool):
    margin = QualityMargin.parse(f"{value:.6f} %" if relative and value >= 1e-6 else value)
    assert QualityMargin.parse(margin.key) == margin


@pytest.mark.parametrize("text", ["0.01", '"2.5 %"'])
def test_a_study_keeps_its_margin_in_its_record_and_its_file(text: str):
    study = parse_study(f'task = "cnn"\nquality_margin = {text}\n', FILE)
    assert study.quality_margin == QualityMargin.parse(text.strip('"') if "%" in text else float(text))
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert parse_study(study_toml(study), FILE) == study


def test_a_wrong_margin_is_refused_with_its_line():
    with pytest.raises(UserError) as caught:
        parse_study('task = "cnn"\nquality_margin = -1\n', FILE)
    assert "study.toml, line 2" in caught.value.received


def test_another_margin_is_no_other_study():
    plain, other = (parse_study(f'task = "cnn"\n{text}', FILE) for text in ("", "quality_margin = 0.01"))
    assert list(differences((plain, []), (other, []))) == []


def test_the_indifference_zone_is_a_key_that_is_kept_and_checked():
    study = parse_study('task = "cnn"\nindifference_zone = 0.02\n', FILE)
    assert study.indifference_zone == 0.02
    assert parse_study(study_toml(study), FILE) == study
    with pytest.raises(UserError) as caught:
        parse_study('task = "cnn"\nindifference_zone = 1.5\n', FILE)
    assert "study.toml, line 2" in caught.value.received
