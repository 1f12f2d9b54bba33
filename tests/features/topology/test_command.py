"""`scalestudy topology`."""

import json


def test_a_node_is_shown_and_drawn_without_measuring(call, tmp_path):
    code, out, err = call("topology", "--no-measure", "--out", tmp_path / "node.svg")
    assert code == 0
    assert out.startswith("Topology of ")
    assert "Measured" not in out
    assert (tmp_path / "node.svg").read_text().startswith("<svg")
    assert "node.svg" in err


def test_json_is_all_that_is_printed(call):
    code, out, _ = call("topology", "--no-measure", "--format", "json")
    told = json.loads(out)
    assert code == 0
    assert len(told["links"]) == len(told["units"]) > 0
    assert told["pairs"] is None


def test_a_file_of_another_kind_is_refused_before_anything_is_measured(call, tmp_path):
    code, out, err = call("topology", "--out", tmp_path / "node.gif")
    assert (code, out) == (2, "")
    assert "node.gif" in err


def test_another_format_is_refused(call):
    code, _, err = call("topology", "--no-measure", "--format", "yaml")
    assert code == 2
    assert "'yaml'" in err
