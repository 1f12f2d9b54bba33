"""What a check's plan takes from the points of a study."""

from scalestudy.features.check.job import check_point
from scalestudy.features.check.plan import libraries_of, needs_of
from scalestudy.study import strategies
from scalestudy.study.strategies import Traits


def points(*names):
    return [check_point(None, 2).on(implementation=name) for name in names]


def test_needs_are_what_processes_meet_by_each_once():
    assert needs_of(points("single", "multiworker", "horovod", "multiworker")) == ("auto", "horovod")
    assert needs_of(points("single", "mirrored", "virtual")) == ()


def test_libraries_are_those_beside_the_engine():
    assert libraries_of(points("multiworker", "horovod", "horovod")) == ("horovod",)


def test_a_strategy_of_another_package_brings_its_library(monkeypatch):
    mine = Traits(
        "mine", "a strategy of another package", "tensorflow", processes="per-worker", library="mpi4py"
    )
    monkeypatch.setitem(strategies.REGISTRY._loaded, "mine", mine)
    assert libraries_of(points("mine")) == ("mpi4py",) and needs_of(points("mine")) == ()
