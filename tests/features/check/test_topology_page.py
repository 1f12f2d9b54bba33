"""A node and its bandwidth, in every form, and the command that shows them."""

import json

from scalestudy.features.check.topology import NodeBandwidth
from scalestudy.features.check.topology_page import topology_document, topology_json
from scalestudy.report.as_html import html
from scalestudy.report.as_terminal import terminal


def test_a_terminal_shows_units_links_and_bandwidth(node, measured):
    rows = [line.split() for line in terminal(topology_document(node, measured)).splitlines()]
    for row in (
        ["GPU0", "V100", "<1>,", "0000:1", "0-2,8", "0"],
        ["GPU0", "X", "NV2"],
        ["GPU0", "X", "48.0"],
        ["GPU1", "9.5", "X"],
        ["1", "MiB", "1.00", "1.00"],
        ["Machine", "(15GB", "total)"],
    ):
        assert row in rows


def test_what_is_not_known_has_no_section(node):
    titles = [getattr(block, "title", "") for block in topology_document(node, NodeBandwidth()).blocks]
    assert [title.split()[0] for title in titles if title] == ["Links,", "The", "As"]


def test_a_page_escapes_what_the_node_says(node, measured):
    page = html(topology_document(node, measured))
    assert "n&lt;1&gt;" in page and "V100 &lt;1&gt;" in page and "NV2" in page


def test_json_holds_bytes_and_seconds(node, measured):
    record = json.loads(topology_json(node, measured))
    assert record["links"]["rows"] == [["X", "NV2"], ["NV2", "X"]]
    assert record["copies"] == [[None, 48e9], [9.5e9, None]]
    assert record["all_reduce"][0]["collective"] == "TensorFlow RING"
    assert record["all_reduce"][0]["bus_bandwidth"] == 1e9
    assert (record["host"], record["notes"]) == ("n<1>", ["a note"])


def test_the_command_prints_a_node_without_measuring(call):
    code, out, _ = call("check", "--topology", "--no-measure")
    assert code == 0 and out.startswith("Topology of ") and "Measured" not in out
    code, out, _ = call("check", "--topology", "--no-measure", "--format", "json")
    record = json.loads(out)
    assert code == 0 and record["cores"] and record["copies"] is None


def test_the_ending_decides_the_form_of_a_file(call, tmp_path):
    code, out, err = call("check", "--topology", "--no-measure", "--out", tmp_path / "node.html")
    assert (code, out) == (0, "") and "node.html" in err
    assert (tmp_path / "node.html").read_text().startswith("<!DOCTYPE html>")
    assert call("check", "--topology", "--no-measure", "--format", "yaml")[0] == 2
