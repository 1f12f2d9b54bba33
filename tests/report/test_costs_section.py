"""The section on the costs of runs, as readers see it."""

from dataclasses import replace

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.costs_section import costs_section
from scalestudy.report.document import Document, Folded, Table
from scalestudy.report.write_document import markdown
from scalestudy.store.usage import NodeUse, ProcessUse


def measured(workers, **changes):
    found = synthetic.run("horovod" if workers > 1 else "single", workers)
    told = {
        "processes": [ProcessUse(rank=r, read_bytes=3 * 2**20, written_bytes=0) for r in range(workers)],
        "nodes": [NodeUse(rank=0, sent_bytes=0, received_bytes=0, loopback_bytes=2**30, cpu_joules=5400.0)],
        "usage_of": "run",
        "wall_seconds": 15.0,
        "better": "higher",
        "bounded": True,
        "flops_per_sample": 2e9,
        "precision": "float32",
        **changes,
    }
    return replace(found, result=found.result.model_copy(update=told))


def page(*runs):
    section = costs_section(analyse("study", runs))
    assert section is not None
    return section, markdown(Document("Study", (section,)))


def test_each_table_holds_what_is_known_in_units_that_read_well():
    section, text = page(measured(1), measured(2))
    table, folded, _ = section.blocks
    assert table.rows[1][:6] == ("horovod", "2", "30.0 s", "15.0 s", "1.50 Wh", "96")
    assert isinstance(folded, Folded) and folded.blocks[0].rows[1][:3] == ("horovod", "2", "0 B")
    for told in ("15.0 s", "1.50 Wh", "1 GiB", "6 MiB", "2.00 GFLOP", "200 GFLOP/s", "processors"):
        assert told in text, told
    assert "Unknown: MFU, since the peak of CPUs is unknown." in text


def test_what_nobody_has_told_has_no_column_and_a_blank_is_no_zero():
    dumb = [NodeUse(rank=0)]
    section, text = page(measured(1), measured(2, nodes=dumb, flops_per_sample=None))
    assert "GPU" not in text and "MFU |" not in text
    hours = next(block for block in section.blocks if isinstance(block, Table))
    (energy,) = (place for place, heading in enumerate(hours.headings) if heading.unit == "training")
    assert [line[energy] for line in hours.rows] == ["1.50 Wh", ""]


def test_a_study_that_knows_nothing_of_its_costs_has_no_section():
    unknown = {"cpu_percent": [], "peak_memory_bytes": [], "wall_seconds": None}
    foreign = replace(synthetic.run(), result=synthetic.run().result.model_copy(update=unknown))
    assert costs_section(analyse("study", [foreign])) is None
