import json
import posixpath
import sys
from importlib.metadata import EntryPoint

import pytest

from scalestudy.util import registry
from scalestudy.util.errors import UserError
from scalestudy.util.registry import Registry

THEIRS = EntryPoint("join", "posixpath:join", "scalestudy.made")


@pytest.fixture
def offered(monkeypatch):
    """Make packages offer these entry points."""

    def offer(*entries: EntryPoint) -> None:
        monkeypatch.setattr(
            registry,
            "entry_points",
            lambda group: [e for e in entries if e.group == group],
        )

    offer()
    return offer


def test_ours_come_first_in_their_order_and_others_by_the_alphabet(offered):
    offered(THEIRS, EntryPoint("isabs", "posixpath:isabs", "scalestudy.made"))
    added = Registry("scalestudy.made", lambda: {"b": "json:dumps", "a": "json:loads"})
    assert added.names() == ["b", "a", "isabs", "join"]


def test_ours_and_theirs_are_got_in_the_same_way(offered):
    offered(THEIRS)
    added = Registry("scalestudy.made", lambda: {"dumps": "json:dumps", "json": "json"})
    assert added.get("dumps") is json.dumps
    assert added.get("json") is json
    assert added.get("join") is posixpath.join
    assert added.module("join") == "posixpath"


def test_nothing_is_imported_before_it_is_asked_for(offered):
    sys.modules.pop("this", None)
    offered(EntryPoint("zen", "this:s", "scalestudy.made"))
    added = Registry("scalestudy.made", lambda: {"own": "this:d"})
    assert {"zen", "own"} <= set(added.names())
    assert added.module("zen") == "this"
    assert "this" not in sys.modules


def test_another_group_is_another_registry_and_an_unknown_name_a_key_error(offered):
    offered(THEIRS)
    assert Registry("scalestudy.other", lambda: {}).names() == []
    with pytest.raises(KeyError):
        Registry("scalestudy.other", lambda: {}).get("join")


def test_two_of_one_name_and_a_package_that_does_not_import_are_refused(offered):
    offered(EntryPoint("dumps", "posixpath:join", "scalestudy.made"))
    with pytest.raises(UserError, match=r"one 'dumps' in scalestudy\.made"):
        Registry("scalestudy.made", lambda: {"dumps": "json:dumps"}).names()
    offered(EntryPoint("broken", "no_such_module:x", "scalestudy.made"))
    with pytest.raises(UserError, match="No module named 'no_such_module'"):
        Registry("scalestudy.made", lambda: {}).get("broken")
