"""What a process of a script reads from its environment, and the workers that it gets."""

import math
import subprocess
import sys

import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.features.scripts.join import Start, start_of
from scalestudy.features.scripts.script_workers import Workers
from scalestudy.util.errors import UserError

TWO = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}


def test_importing_scalestudy_and_its_workers_imports_no_framework():
    program = "import scalestudy, sys; scalestudy.workers; print({'tensorflow', 'keras'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_process_by_itself_is_one_worker():
    start = start_of({}, "horovod", {})
    assert (start.workers, start.strategy, start.placement.source) == (1, "single", "alone")


def test_what_the_launcher_says_goes_before_what_the_script_asks_for():
    said = {
        "SCALESTUDY_SCRIPT_STRATEGY": "horovod",
        "SCALESTUDY_SCRIPT_WORKERS": "2",
        "SCALESTUDY_SCRIPT_DEVICE": "cpu",
    }
    start = start_of(TWO | said, "multiworker", {})
    assert (start.workers, start.strategy, start.device, start.placement.rank) == (2, "horovod", "cpu", 1)


def test_processes_that_a_cluster_has_started_are_a_worker_each():
    assert start_of(TWO, None, {}).strategy == "multiworker"
    assert start_of(TWO, "horovod", {}).strategy == "horovod"


def test_one_process_holds_several_workers_where_the_strategy_does():
    start = start_of({"SCALESTUDY_SCRIPT_STRATEGY": "virtual", "SCALESTUDY_SCRIPT_WORKERS": "3"}, None, {})
    assert (start.workers, start.strategy) == (3, "virtual")


def test_an_unknown_strategy_and_another_backend_are_refused():
    for name in ("horovd", "mirrored"):
        with pytest.raises(UserError, match=name):
            start_of(TWO, name, {})
    torch = type("keras", (), {"config": type("c", (), {"backend": staticmethod(lambda: "torch")})})
    with pytest.raises(UserError, match="KERAS_BACKEND=tensorflow"):
        start_of(TWO, None, {"keras": torch})


@pytest.fixture
def alone():
    return Workers(Start(Placement(0, 1, 0, 1, 0, ("here",), "alone"), 1, "single", "auto"))


def test_a_rate_is_scaled_by_the_workers_as_asked(alone):
    alone.size = 4
    assert alone.scaled(0.1) == pytest.approx(0.4)
    assert alone.scaled(0.1, "sqrt") == pytest.approx(0.1 * math.sqrt(4))
    assert alone.scaled(0.1, "none") == 0.1
    with pytest.raises(UserError, match="'cube'"):
        alone.scaled(0.1, "cube")


def test_a_misspelt_batch_is_refused_on_one_worker_too(alone):
    with pytest.raises(UserError, match="batch='worker'"):
        alone.fit(None, batch="worker")
