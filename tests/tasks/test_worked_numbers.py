"""The numbers worked out in docs/reference/losses-and-metrics.md equal the computed ones."""

import re
from pathlib import Path

import numpy as np
import pytest

from gathered import Gathered, measured
from scalestudy.study.objectives import LOSSES, METRICS, loss_terms, metric_term
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.losses import sum_of
from scalestudy.tasks.metrics import named_metric

pytestmark = pytest.mark.engine

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "losses-and-metrics.md").read_text()
TRUE = np.array([[[1, 1, 0, 0, 1, 1, 1, 0]]], "uint8")
OUTPUTS = np.array([[[0.9, 0.8, 0.2, 0.1, 0.6, 0.4, 0.15, 0.2]]], "float32")[..., None]
EXAMPLE = Gathered(DataInfo("masks", (1, 8, 1), 2), TRUE, OUTPUTS)
PARTS = dict(zip(("loss", "metric"), PAGE.split("## Losses")[1].split("## Metrics"), strict=True))
ROWS = [
    (kind, *row)
    for kind, part in PARTS.items()
    for row in re.findall(r"^\| `([^`]+)` \|.*\| ([0-9.]+) \|$", part, flags=re.M)
]


def computed(kind, text):
    if kind == "loss":
        return float(sum_of(loss_terms(text), EXAMPLE.data)(TRUE, OUTPUTS)[0])
    return measured(named_metric(metric_term(text), EXAMPLE.data), EXAMPLE)


def test_every_loss_and_every_metric_that_is_a_number_has_one():
    named = {(kind, text.split("(")[0]) for kind, text, _ in ROWS}
    numbers = set(METRICS) - {"confusion_matrix", "top_k"}
    assert named == {("loss", name) for name in LOSSES} | {("metric", name) for name in numbers}


def test_each_number_is_what_is_computed():
    for kind, text, written in ROWS:
        assert f"{computed(kind, text):.4f}" == written, text
