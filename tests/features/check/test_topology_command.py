"""`scalestudy check --topology`."""

import json


def test_a_node_is_shown_without_measuring(call):
    code, out, _ = call("check", "--topology", "--no-measure")
    assert code == 0 and out.startswith("Topology of ") and "Measured" not in out


def test_json_is_all_that_is_printed(call):
    code, out, _ = call("check", "--topology", "--no-measure", "--format", "json")
    record = json.loads(out)
    assert code == 0 and record["units"] and record["pairs"] is None


def test_the_ending_decides_the_form_of_a_file(call, tmp_path):
    code, out, err = call("check", "--topology", "--no-measure", "--out", tmp_path / "node.html")
    assert (code, out) == (0, "") and "node.html" in err
    assert (tmp_path / "node.html").read_text().startswith("<!DOCTYPE html>")


def test_another_format_is_refused(call):
    code, _, err = call("check", "--topology", "--no-measure", "--format", "yaml")
    assert code == 2 and "'yaml'" in err
