"""A study's points on this machine, and why GPUs that it asks for are not seen."""

from pathlib import Path

import pytest

from fake_nvml import cards
from scalestudy.errors import UserError
from scalestudy.launch.local.launcher import points_here
from scalestudy.machine import devices
from scalestudy.study.parse import parse_study


@pytest.fixture(autouse=True)
def counted_anew(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices.gpus.cache_clear()
    yield
    devices.gpus.cache_clear()


def points(launch="", sweep=""):
    text = f'task = "cnn"\n[launch]\n{launch}\n[sweep]\nworkers = 1\n{sweep}\n'
    return points_here(parse_study(text, Path("mine.toml")))


@pytest.mark.parametrize(
    ("launch", "sweep"), [('device = "gpu"', ""), ("", '"launch.device" = ["cpu", "gpu"]')]
)
def test_gpus_that_are_asked_for_and_not_seen_are_refused_with_the_line_and_the_reason(nvml, launch, sweep):
    nvml(driver=None)
    with pytest.raises(UserError) as error:
        points(launch, sweep)
    assert "mine.toml" in str(error.value) and "NVML Shared Library Not Found" in str(error.value)


def test_where_there_are_some_they_are_taken(nvml):
    nvml(*cards(1))
    assert points('device = "gpu"')[0].launch.device == "gpu"


def test_on_cpus_none_is_needed(nvml):
    nvml(driver=None)
    assert points() and points('device = "cpu"')
