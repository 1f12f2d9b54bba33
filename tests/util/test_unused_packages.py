import gc
import importlib
import sys

import pytest

from scalestudy.util.unused_packages import without_unused


@pytest.fixture(autouse=True)
def unused(monkeypatch):
    """A package that has not been imported yet."""
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    yield
    gc.enable()
    gc.unfreeze()


def test_what_is_not_needed_is_not_found_within_and_found_afterwards_whatever_happens():
    with without_unused(["wave"]), pytest.raises(ImportError):
        importlib.import_module("wave")
    with pytest.raises(ValueError, match="within"), without_unused(["wave"]):
        raise ValueError("within")
    assert importlib.import_module("wave").open


def test_what_was_imported_before_stays():
    before = importlib.import_module("wave")
    with without_unused(["wave"]):
        assert importlib.import_module("wave") is before
    assert sys.modules["wave"] is before


def test_no_garbage_is_collected_within_and_what_was_made_there_counts_as_none_afterwards():
    frozen = gc.get_freeze_count()
    with without_unused(["wave"]):
        assert not gc.isenabled()
        lists = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= frozen + len(lists)
    gc.disable()
    with without_unused(["wave"]):
        pass
    assert not gc.isenabled()
