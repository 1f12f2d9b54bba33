"""Whatever a file holds: its runs are read and reported, or it is refused by name; never a traceback."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scalestudy.analysis.findings import analyse
from scalestudy.errors import UserError
from scalestudy.features.imported.base import Wanted
from scalestudy.features.imported.gather import gather
from scalestudy.features.imported.readers import READERS
from scalestudy.report.tabular import to_csv, to_json

NAMES = ("log_8.csv", "log_8.json", "log_8.txt", "log_8", "events.out.tfevents.8.gpus", "log_8.parquet")
HEADS = (
    b"",
    b"gpus,time [min],acc\n",
    b"workers;seconds\n",
    b",time_per_epoch,loss,lr,training_time,test_time,iou\n",
    b"epoch,accuracy,loss,val_accuracy,val_loss\n",
    b"PAR1",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"[",
    b'{"workers": 2, "seconds": ',
    b'\x18\0\0\0\0\0\0\0\xa3\x7fK"brain.Event:2',
    b"strategy,workers,runs,global_batch,speedup_training,quality_note\n",
)
ODD = ["nan", "inf", "1e308", "1e-320", "9" * 400, "1,5", "", " ", "x", "0x1", "1_0", "=1", '"']
CELLS = st.one_of(
    st.sampled_from([*ODD, "1", "8", "0", "-3"]),
    st.integers(-3, 40).map(str),
    st.floats().map(repr),
    st.text(max_size=6),
)
COLUMNS = st.sampled_from([
    "gpus", "n", "strategy", "seconds", "time[min]", "time(parsecs)", "images/s", "throughput_per_gpu", "acc",
    "val_acc", "iou", "seed", "epoch", "epochs", "batch_size", "global_batch", "lr", "loss", "val_loss",
    "updates", "samples", "nodes", "val_samples", "efficiency", "speedup", "better", "metric", "",
])  # fmt: skip


def taken(path: Path) -> None:
    """Read and report a file, or refuse it in words."""
    try:
        found = gather([str(path)])
    except UserError:
        return
    findings = analyse("any", found.runs)
    json.loads(to_json(findings))
    assert to_csv(findings.rows).count("\n") >= len(findings.rows)
    assert all(run.source and run.result.workers > 0 for run in found.runs)


ANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ANY
@given(st.sampled_from(NAMES), st.sampled_from(HEADS), st.binary(max_size=200))
@example("log_8.csv", b"", b"\0" * 50)
@example("log_8", b"{", b"[" * 5000)
def test_any_bytes_are_read_or_refused(tmp_path: Path, name: str, head: bytes, rest: bytes):
    path = tmp_path / name
    path.write_bytes(head + rest)
    taken(path)


@ANY
@given(st.lists(COLUMNS, min_size=1, max_size=6), st.data(), st.sampled_from([",", ";", "\t"]))
def test_any_table_is_read_or_refused(tmp_path: Path, header: list[str], data: st.DataObject, mark: str):
    rows = data.draw(st.lists(st.lists(CELLS, min_size=len(header), max_size=len(header)), max_size=6))
    path = tmp_path / "table_8.csv"
    path.write_text("\n".join(mark.join(row) for row in [header, *rows]), encoding="utf-8", errors="replace")
    taken(path)


@ANY
@given(
    st.lists(
        st.dictionaries(
            COLUMNS, st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4))
        ),
        max_size=5,
    )
)
def test_any_objects_are_read_or_refused(tmp_path: Path, objects: list[dict[str, object]]):
    path = tmp_path / "any_8.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in objects), encoding="utf-8", errors="replace")
    taken(path)


@pytest.mark.parametrize("name", READERS.built_in())
def test_a_file_that_holds_no_numbers_is_refused_by_every_reader(name: str, tmp_path: Path):
    path = tmp_path / "notes_8.txt"
    path.write_text("Dear colleague,\nthe runs are done.\n")
    with pytest.raises(UserError):
        READERS.get(name).read(path, Wanted())


def test_a_file_of_no_known_form_is_refused_by_name(tmp_path: Path):
    path = tmp_path / "notes_8.txt"
    path.write_text("Dear colleague,\nthe runs are done.\n")
    with pytest.raises(UserError, match=r"notes_8\.txt, which is none"):
        gather([str(path)])
