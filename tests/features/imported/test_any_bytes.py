"""For any content of a file, its runs are reported or it is refused by name, without a traceback."""

import json
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.gather import gather_runs
from scalestudy.report.formats import to_csv, to_json
from scalestudy.util.errors import UserError

NAMES = ("t.csv", "t.json", "t.txt")
HEADS = (
    b"",
    b"gpus,training_time [min],iou\n",
    b"gpus,epoch_time,batch,val_accuracy,val_loss\n",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"[",
    b'[{"workers": 2, "seconds": ',
)
ODD = [
    "nan",
    "inf",
    "1e308",
    "1e-308",
    "1e-320",
    "9" * 400,
    "1,5",
    "",
    " ",
    "x",
    "0x1",
    "1_0",
    "=1",
    '"',
]
CELLS = st.one_of(
    st.sampled_from([*ODD, "1", "8", "0", "-3"]),
    st.integers(-3, 40).map(str),
    st.floats().map(repr),
    st.text(max_size=6),
)
NAMED = (
    "gpus strategy seconds training_time[min] seconds(parsecs) throughput accuracy val_accuracy iou quality"
    " seed epoch epoch_time epochs per_worker_batch global_batch batch loss metric train.xla nodes"
)
COLUMNS = st.sampled_from([*NAMED.split(), ""])


def taken(path: Path) -> None:
    """Read and report a file, or accept that it is refused."""
    try:
        found = gather_runs([str(path)])
    except UserError:
        return
    findings = analyse("any", found.runs)
    json.loads(to_json(findings))
    assert to_csv(findings.rows).count("\n") >= len(findings.rows)
    assert all(run.source and run.result.workers > 0 for run in found.runs)


ANY = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@ANY
@given(st.sampled_from(NAMES), st.sampled_from(HEADS), st.binary(max_size=200))
@example("t.csv", b"", b"\0" * 50)
@example("t.json", b"{", b"[" * 5000)
def test_any_bytes_are_read_or_refused(
    tmp_path: Path, name: str, head: bytes, rest: bytes
):
    path = tmp_path / name
    path.write_bytes(head + rest)
    taken(path)


@ANY
@given(st.lists(COLUMNS, min_size=1, max_size=6), st.data())
def test_any_table_is_read_or_refused(
    tmp_path: Path, header: list[str], data: st.DataObject
):
    rows = data.draw(
        st.lists(
            st.lists(CELLS, min_size=len(header), max_size=len(header)), max_size=6
        )
    )
    path = tmp_path / "t.csv"
    path.write_text(
        "\n".join(",".join(row) for row in [header, *rows]),
        encoding="utf-8",
        errors="replace",
    )
    taken(path)


@ANY
@given(
    st.lists(
        st.dictionaries(
            COLUMNS, st.one_of(CELLS, st.none(), st.booleans(), st.integers())
        ),
        max_size=5,
    )
)
def test_any_objects_are_read_or_refused(
    tmp_path: Path, objects: list[dict[str, object]]
):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(objects), encoding="utf-8", errors="replace")
    taken(path)
