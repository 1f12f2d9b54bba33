import json
import sys

import pytest

from scalestudy.util.registry import Registry


def test_names_come_in_their_order_and_items_are_objects_or_modules():
    items = Registry("made", lambda: {"dumps": "json:dumps", "json": "json", "a": json.loads})
    assert items.names() == ["dumps", "json", "a"]
    assert items.items() == [json.dumps, json, json.loads]
    assert items.module("dumps") == "json"
    assert "a" in items and "b" not in items
    with pytest.raises(KeyError):
        items.get("b")


def test_nothing_is_imported_before_it_is_asked_for():
    sys.modules.pop("this", None)
    items = Registry("made", lambda: {"zen": "this:s"})
    assert (items.names(), items.module("zen")) == (["zen"], "this")
    assert "this" not in sys.modules
