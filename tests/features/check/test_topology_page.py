"""A node and its bandwidth, in every form."""

import json

import pytest

from scalestudy.features.check.topology_bandwidth import Bandwidth
from scalestudy.features.check.topology_page import all_reduce_figure, topology_document, topology_json
from scalestudy.report.as_html import html
from scalestudy.report.as_terminal import terminal


def test_a_terminal_shows_units_links_and_bandwidth(node, measured):
    rows = [line.split() for line in terminal(topology_document(node, measured)).splitlines()]
    for row in (
        ["GPU0", "V100", "<1>", "0-2,8", "0"],
        ["GPU0", "X", "NV2"],
        ["GPU0", "X", "48.0"],
        ["GPU1", "9.5", "X"],
        ["1", "MiB", "1.00", "1.00"],
        ["Machine", "(15GB", "total)"],
    ):
        assert row in rows


def test_what_is_not_known_has_no_section(node):
    titles = [getattr(block, "title", "") for block in topology_document(node, Bandwidth()).blocks]
    assert [title.split()[0] for title in titles if title] == ["Links,", "The"]


def test_a_page_escapes_what_the_node_says_and_holds_the_figure(node, measured):
    page = html(topology_document(node, measured))
    assert "n&lt;1&gt;" in page and "V100 &lt;1&gt;" in page and "NV2" in page
    assert "data:image/svg+xml" in page


def test_the_figure_draws_a_line_for_each_collective(measured):
    (rows,) = all_reduce_figure(measured.all_reduces).spec["datasets"].values()
    assert [(row["collective"], row["size"], round(row["value"], 9)) for row in rows] == [
        ("RING", 1024, 1.0), ("RING", 2**20, 1.0), ("Gloo", 1024, 1.0), ("Gloo", 2**20, 1.0)
    ]  # fmt: skip


def test_json_holds_bytes_and_seconds(node, measured):
    record = json.loads(topology_json(node, measured))
    assert record["links"]["rows"] == [["X", "NV2"], ["NV2", "X"]]
    assert record["pairs"]["bandwidth"] == [[None, 48e9], [9.5e9, None]]
    assert record["all_reduce"][0]["bus_bandwidth"] == pytest.approx(1e9)
    assert (record["host"], record["notes"]) == ("n<1>", ["a note"])
