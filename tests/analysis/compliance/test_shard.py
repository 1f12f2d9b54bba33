"""Validation on a part of the set."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.analysis.compliance.shard import granularity

TITLE = "Validation on a shard"


def test_a_column_that_says_so_is_believed(looked):
    """Published: 224 images on 1 GPU, 16 on 8."""
    text = "gpus,seconds,accuracy,val_samples\n1,7535,.964,224\n8,1156,.875,16\n"
    found = looked(text)[TITLE]
    assert found.severity == "wrong"
    assert "16 samples, its column says, and of 224 at" in found.sentence
    assert "steps of 0.0625" in found.sentence
    assert (found.claimed, found.corrected) == ("quality 0.875", "0.875 ± 0.17")


def log(values: list[float]) -> str:
    rows = [f"{epoch},{1 / (epoch + 1)},{value!r}" for epoch, value in enumerate(values)]
    return "\n".join(["epoch,loss,val_accuracy", *rows])


def test_the_steps_of_an_accuracy_betray_it(looked):
    files = {
        "log_1.csv": log([count / 224 for count in (151, 170, 189, 201, 210, 211)]),
        "log_8.csv": log([count / 16 for count in (9, 11, 13, 14, 13, 15)]),
    }
    found = looked(files)[TITLE]
    assert found.severity == "doubtful"
    assert "16 samples, all its values are multiples of 1/N" in found.sentence
    assert "of 224 at" in found.sentence
    assert found.where == "log_1.csv, lines 2-7; log_8.csv, lines 2-7"


def test_the_same_set_everywhere_is_left_alone(looked):
    text = "gpus,seconds,accuracy,val_samples\n1,7535,.964,224\n8,1156,.875,224\n"
    assert TITLE not in looked(text)


@given(st.sampled_from([11, 17, 97, 211]), st.data())
def test_the_number_of_samples_is_found(count: int, data: st.DataObject):
    hits = data.draw(st.lists(st.integers(1, count - 1), min_size=3, max_size=8, unique=True))
    assert granularity(sorted(hit / count for hit in hits)) == count


def test_values_of_no_such_set_are_not_taken_for_one():
    chance = random.Random(11)
    sets = [[round(chance.random(), 6) for _ in range(4)] for _ in range(100)]
    assert sum(granularity(values) is not None for values in sets) <= 1


@pytest.mark.parametrize("values", [[], [0.91], [0.951, 0.964], [0.9511, 0.9642, 0.8863]])
def test_few_digits_tell_nothing(values: list[float]):
    assert granularity(values) is None


def test_single_precision_is_allowed_for():
    assert granularity([0.8973214030265808, 0.9241071343421936, 0.9375]) == 224
