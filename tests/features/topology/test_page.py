"""A node's matrices as text, as JSON, as pictures and as a page."""

import json

import pytest

from scalestudy.errors import UserError
from scalestudy.features.topology.figures import DARK_INK, LIGHT_INK, gigabytes, topology_figures
from scalestudy.features.topology.page import to_page, write_topology
from scalestudy.features.topology.pairs import Pairs
from scalestudy.features.topology.text import topology_json, topology_text
from scalestudy.features.topology.units import Topology, Unit
from scalestudy.measure.bandwidth import AllReduce


def node(links=(("X", "NV2"), ("NV2", "X"))):
    units = tuple(Unit(f"GPU {index}", "V100 <1>", (0, 1), (index,)) for index in range(len(links)))
    return Topology("gpu", units, links, (0, 1), ((10, 32), (32, 10)), ("a remark",))


PAIRS = Pairs(((None, 48e9), (9.5e9, None)), 2**25, "a copy")
SUMS = [AllReduce(name, 2, size, size / 1e9) for name in ("RING", "Gloo") for size in (1024, 2**20)]


def cells(figure):
    return [row for rows in figure.spec["datasets"].values() for row in rows]


def test_text_holds_links_distances_and_what_was_measured():
    text = topology_text(node(), PAIRS, SUMS, host="n1")
    rows = [line.split() for line in text.splitlines()]
    assert ["GPU", "0", "X", "NV2"] in rows
    assert ["NUMA", "1", "32", "10"] in rows
    assert ["GPU", "0", "X", "48.0"] in rows
    assert ["1", "MiB", "1.00", "1.00"] in rows
    assert "NV#" in text and "SYS" not in text
    assert "a remark" in text


def test_text_without_measuring_holds_no_bandwidth():
    assert "Measured" not in topology_text(node(), None, [], host="n1")


def test_json_holds_bytes_per_second():
    told = json.loads(topology_json(node(), PAIRS, SUMS, ["a note"], host="n1"))
    assert told["links"] == [["X", "NV2"], ["NV2", "X"]]
    assert told["pairs"]["bandwidth"] == [[None, 48e9], [9.5e9, None]]
    assert told["all_reduce"][0]["bus_bandwidth"] == pytest.approx(1e9)
    assert (told["host"], told["notes"]) == ("n1", ["a note"])


def test_only_figures_with_something_in_them_are_drawn():
    assert [figure.name for figure in topology_figures(node(), PAIRS, SUMS, "n1")] == [
        "links",
        "pairs",
        "all-reduce",
    ]
    assert [figure.name for figure in topology_figures(node(), None, [], "n1")] == ["links"]


def test_the_faster_pair_is_darker_and_its_number_light():
    _, figure = topology_figures(node(), PAIRS, [], "n1")
    fast, slow = cells(figure)
    assert (fast["text"], slow["text"]) == ("48.0", "9.5")
    assert fast["shade"] < slow["shade"]
    assert (fast["ink"], slow["ink"]) == (LIGHT_INK, DARK_INK)


def test_numbers_of_a_matrix_share_their_decimals():
    assert gigabytes([None, 48e9, 9.54e9]) == ["", "48.0", "9.5"]
    assert gigabytes([None]) == [""]


@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_the_ending_decides_what_is_written(tmp_path, ending):
    file = tmp_path / f"node.{ending}"
    write_topology(file, node(), PAIRS, SUMS, "n1")
    content = file.read_bytes()
    assert content.startswith({"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[ending])
    if ending == "svg":
        assert b"NV2" in content and b"48.0" in content and b"RING" in content


def test_a_page_needs_no_network_and_escapes_what_it_is_told():
    page = to_page(node(), PAIRS, SUMS, "n<1>")
    assert "https://" not in page.replace("http://www.w3.org", "")
    assert "n&lt;1&gt;" in page and "V100 &lt;1&gt;" in page
    assert page.count("prefers-color-scheme: dark") == 1 + 3


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"node\.gif"):
        write_topology(tmp_path / "node.gif", node(), None, [], "n1")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="--out"):
        write_topology(tmp_path / "none" / "node.svg", node(), None, [], "n1")
