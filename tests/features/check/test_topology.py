"""A node as nvidia-smi and the driver describe it, its measurements, and its page."""

import json
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_nvml import Card, cards
from scalestudy.features.check import topology
from scalestudy.features.check.rank import check_here
from scalestudy.features.check.report import TOPICS, AllReduce, Report, failed, passed, warned
from scalestudy.features.check.topology import (
    Node,
    NodeBandwidth,
    measure,
    ranges,
    read_node,
    time_all_reduces,
    topology_document,
    topology_json,
)
from scalestudy.hardware import cores
from scalestudy.hardware.devices import Gpu
from scalestudy.measure.bandwidth import SIZES
from scalestudy.report.as_html import html
from scalestudy.report.as_terminal import terminal
from scalestudy.study.engines import engine_names, engine_traits
from scalestudy.util.errors import RunError, UserError


def test_gpus_that_may_be_used_are_units_by_nvidia_smis_names(nvml, monkeypatch):
    monkeypatch.setattr(topology, "output_of", lambda *command: "SYS" if command[0] == "nvidia-smi" else "")
    nvml(*cards(3))
    found = read_node({"CUDA_VISIBLE_DEVICES": "2,0"})
    assert [(gpu.index, gpu.uuid) for gpu in found.gpus] == [(0, "GPU-a0"), (2, "GPU-c2")]
    assert found.links == "SYS"


def test_a_gpu_that_is_divided_is_one_unit(nvml, monkeypatch):
    monkeypatch.setattr(topology, "output_of", lambda *command: "")
    nvml(Card(uuid="GPU-mig", instances=[Card(uuid="MIG-1"), Card(uuid="MIG-2")]))
    found = read_node({"CUDA_VISIBLE_DEVICES": "MIG-2,MIG-1"})
    assert [gpu.uuid for gpu in found.gpus] == ["GPU-mig"] and found.links == ""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux only")
def test_without_gpus_the_granted_cores_are_told(nvml):
    nvml()
    found = read_node({})
    assert found.gpus == () and found.links == ""
    assert set(found.cores) == os.sched_getaffinity(0)


def test_a_program_that_is_missing_or_fails_says_nothing():
    assert topology.output_of("no-such-program") == topology.output_of("false") == ""


@given(st.sets(st.integers(0, 300), min_size=1))
def test_ranges_hold_every_number(cpus):
    ends = [part.split("-") for part in ranges(cpus).split(",")]
    assert {cpu for pair in ends for cpu in range(int(pair[0]), int(pair[-1]) + 1)} == cpus


def test_ranges_are_written_as_the_kernel_does():
    assert ranges([0, 1, 2, 3, 8]) == "0-3,8"


def cpu_node(count):
    granted = cores.granted()
    return Node("n1", (), tuple(granted[n % len(granted)] for n in range(count)))


def gpu_node(count):
    return Node("n1", tuple(Gpu(n, f"GPU-{n}", "", "") for n in range(count)), ())


def timing(name, size, ranks=2):
    return AllReduce(
        collective=name, ranks=ranks, bytes=size, seconds=1.0, algorithm_bandwidth=size, bus_bandwidth=size
    )


@pytest.mark.parametrize("printed", ["[]", "[[null]]"], ids=["a build without CUDA", "instances"])
def test_gpus_that_the_framework_does_not_list_are_counted(monkeypatch, printed):
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, f"{printed}\n", "")
    )
    with pytest.raises(RunError, match=r"between 2 GPUs.*Received \d that.*--no-measure"):
        measure(gpu_node(2))


@pytest.mark.parametrize("has_tensorflow", [True, False])
def test_all_reduces_are_measured_where_there_is_a_framework(monkeypatch, has_tensorflow):
    shown, row = [], timing("ring", 1024)
    monkeypatch.setattr(topology, "between_gpus", lambda gpus: ((None, 1e9), (1e9, None)))
    monkeypatch.setattr(topology, "time_all_reduces", lambda node, tell: ((row,), ("a note",)))
    missing = None if has_tensorflow else UserError("it", "none", "Install it.")
    for name in engine_names():
        monkeypatch.setattr(type(engine_traits(name)), "missing_software", lambda self: missing)
    found = measure(gpu_node(2), shown.append)
    assert found.copies is not None and len(shown) == 1
    assert found.all_reduces == ((row,) if has_tensorflow else ())
    assert len(found.notes) == 1


def test_one_unit_alone_has_no_links():
    found = measure(cpu_node(1))
    assert found == NodeBandwidth(notes=found.notes) and len(found.notes) == 1


@pytest.fixture
def checked(monkeypatch):
    """A check with real processes that only look at their cores, and with invented timings."""
    seen = {}

    def check(folder, plan, on_progress):
        only_cores = tuple(topic for topic in TOPICS if topic != "cores")
        seen["plan"], seen["report"] = plan, check_here(folder, plan.model_copy(update={"skip": only_cores}))
        lines = (
            failed("collectives", "n1", "auto stalled", "Look."),
            warned("devices", "n1", "no question of sums", "None."),
            passed("collectives", "n1", "ring over 2 ranks"),
        )
        return Report(lines=lines, bandwidth=[timing("ring", size, plan.workers) for size in plan.sizes])

    monkeypatch.setattr(topology, "check_here", check)
    return seen


@pytest.mark.slow
@pytest.mark.skipif(len(cores.granted()) < 2, reason="one core alone has none to combine with")
def test_a_process_for_each_core_sums_on_its_core_and_what_failed_is_noted(checked):
    before = os.sched_getaffinity(0)
    timings, notes = time_all_reduces(cpu_node(2))
    (line,) = [line for line in checked["report"].lines if line.topic == "cores"]
    assert (line.status, line.seen) == ("pass", "2 cores granted, 2 x 1 requested")
    assert (checked["plan"].workers, checked["plan"].device) == (2, "cpu")
    assert checked["plan"].wants("collectives") and checked["plan"].wants("bandwidth")
    assert os.sched_getaffinity(0) == before
    assert sorted(row.bytes for row in timings) == list(SIZES)
    assert notes == ("collectives, n1: auto stalled. Look.",)


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
    assert [title.split()[0] for title in titles if title] == ["Links,", "Processors,", "Topology,"]


def test_a_page_escapes_what_the_node_says(node, measured):
    page = html(topology_document(node, measured))
    assert "n&lt;1&gt;" in page and "V100 &lt;1&gt;" in page and "NV2" in page


def test_json_holds_bytes_and_seconds(node, measured):
    record = json.loads(topology_json(node, measured))
    assert "NV2" in record["links"]
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
