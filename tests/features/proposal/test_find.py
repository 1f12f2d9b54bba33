"""Panels by name: shipped ones, the user's own, and files."""

import pytest

from scalestudy.features.proposal.find import all_panels, find_panel, panels_folder, shipped_panels
from scalestudy.util.errors import UserError


@pytest.fixture
def own(monkeypatch, tmp_path):
    """The user's folder of panels."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    panels_folder().mkdir(parents=True)
    return panels_folder()


def test_a_shipped_panel_is_found_by_its_name():
    assert find_panel("csc").panel == "CSC"
    assert {"archer2", "archie-west", "csc", "nhr", "hlrs", "cscs", "access"} <= set(shipped_panels())


def test_the_users_own_goes_before_a_shipped_one_and_a_file_before_both(own, tmp_path):
    text = shipped_panels()["csc"].replace('panel = "CSC"', 'panel = "Mine"')
    (own / "csc.toml").write_text(text)
    (tmp_path / "other.toml").write_text(text.replace("Mine", "Other"))
    assert find_panel("csc").panel == "Mine"
    assert find_panel(str(tmp_path / "other.toml")).panel == "Other"


def test_one_that_is_not_right_does_not_hide_the_others(own):
    (own / "broken.toml").write_text("panel = ")
    found = dict(all_panels())
    assert isinstance(found["broken"], UserError)
    assert len(found) == len(shipped_panels()) + 1


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(UserError, match=r"archer2.*Did you mean `archer2`"):
        find_panel("archer")
    with pytest.raises(UserError, match="does not exist"):
        find_panel("./none.toml")
