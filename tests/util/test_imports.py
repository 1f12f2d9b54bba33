import gc
import importlib
import sys

import pytest

from scalestudy.util import imports


@pytest.fixture
def unused(monkeypatch):
    """One package that nobody has imported yet."""
    monkeypatch.delitem(sys.modules, "wave", raising=False)


@pytest.mark.usefixtures("unused")
def test_what_is_not_needed_is_not_found_within_and_found_afterwards():
    with imports.without_unused(["wave"]), pytest.raises(ImportError):
        importlib.import_module("wave")
    assert importlib.import_module("wave").open


@pytest.mark.usefixtures("unused")
def test_what_was_imported_before_stays():
    before = importlib.import_module("wave")
    with imports.without_unused(["wave"]):
        assert importlib.import_module("wave") is before
    assert sys.modules["wave"] is before


@pytest.mark.usefixtures("unused")
def test_an_error_within_hides_nothing_for_good():
    with pytest.raises(ValueError, match="within"), imports.without_unused(["wave"]):
        raise ValueError("within")
    assert importlib.import_module("wave").open


@pytest.mark.usefixtures("unused")
def test_no_garbage_is_collected_within_and_what_was_made_there_counts_as_none_afterwards():
    kept = gc.get_freeze_count()
    try:
        with imports.without_unused(["wave"]):
            assert not gc.isenabled()
            made = [[] for _ in range(1000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= kept + len(made)
    finally:
        gc.unfreeze()


@pytest.mark.usefixtures("unused")
def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with imports.without_unused(["wave"]):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()
