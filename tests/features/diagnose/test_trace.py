import json

from scalestudy.features.diagnose.trace import write_trace
from scalestudy.features.diagnose.twin import AblationTimes, Mark


def times(rank, *marks):
    return AblationTimes(rank=rank, host="node", cpus=(rank,), parameters=1, blocks=(), marks=marks)


def test_ranks_phases_and_steps_stand_on_one_time_line(tmp_path):
    joined = [
        times(0, Mark(name="whole", lane="phase", begun=100.0, ended=101.0)),
        times(1, Mark(name="step", lane="step", begun=100.25, ended=100.5)),
    ]
    file = write_trace(tmp_path / "trace.json", joined, [times(0)])
    events = json.loads(file.read_text())["traceEvents"]
    names = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    assert list(names.values()) == [
        "rank 0, joined (node)",
        "rank 1, joined (node)",
        "worker 0, apart (node)",
    ]
    spans = [each for each in events if each["ph"] == "X"]
    assert [(each["name"], each["ts"], each["dur"]) for each in spans] == [
        ("whole", 0.0, 1e6),
        ("step", 250_000.0, 250_000.0),
    ]
    assert spans[0]["tid"] != spans[1]["tid"]
    lanes = {(each["pid"], each["tid"]) for each in events if each["name"] == "thread_name"}
    assert {(each["pid"], each["tid"]) for each in spans} <= lanes
