import pytest

from scalestudy.app.selection import (
    all_but_seeds,
    group_points,
    selected,
    status_record,
)
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.launch.job_view import JobView
from scalestudy.launch.launcher import Overview, PointStatus
from scalestudy.launch.waiting import Waiting
from scalestudy.store.records import JobRecord
from scalestudy.util.errors import UserError

TEXT = """
task = "cnn"
[sweep]
strategy = ["native", "virtual"]
workers = [1, 2]
seed = [0, 1, 2]
batch_size = [8, 16]
"""


@pytest.fixture
def overview(tmp_path) -> Overview:
    """24 points; those with 2 workers have failed."""
    points = expand(parse_study(TEXT, tmp_path / "study.toml"), gpus=0, cores=8)
    failed = {"state": "failed", "reason": "out of memory"}
    return Overview(
        [
            PointStatus(item, **(failed if item.workers == 2 else {"state": "done"}))
            for item in points
        ]
    )


def test_points_are_chosen_by_state_and_by_pattern(overview):
    assert len(overview.points) == 24
    assert {
        item.point.workers for item in selected(overview, states=["failed"]).points
    } == {2}
    assert len(selected(overview, states=["failed", "done"]).points) == 24
    chosen = selected(
        overview, patterns=["virtual-w1-*", "native-w2-s0-batch_size=8"]
    ).points
    assert {item.point.strategy for item in chosen} == {"virtual", "native"}
    assert len(chosen) == 7
    assert not selected(overview, states=["queued"]).points


def test_an_unknown_state_or_a_pattern_that_fits_nothing_is_refused_naming_what_there_is(
    overview,
):
    with pytest.raises(
        UserError, match=r"one of the states .*cancelled.* Received 'faild'"
    ):
        selected(overview, states=["faild"])
    with pytest.raises(
        UserError, match=r"'horovod-\*', which matches none of 24 points"
    ):
        selected(overview, patterns=["horovod-*"])


def test_points_are_grouped_by_all_but_their_seed_or_by_fewer_axes(overview):
    groups = group_points(overview, all_but_seeds(overview))
    assert [len(group.points) for group in groups] == [3] * 8
    assert (groups[0].title, groups[0].states) == (
        "native, 1 worker, train.batch_size = 8",
        {"done": 3},
    )
    assert [
        (group.title, group.states) for group in group_points(overview, ["workers"])
    ] == [
        ("1 worker", {"done": 12}),
        ("2 workers", {"failed": 12}),
    ]


def test_the_record_counts_states_and_knows_what_jobs_wait_for(overview):
    job = JobRecord(job="7", submitted=1.0, site="here", script="x.sh")
    held = JobView(job="7", state="PENDING", reason="JobHeldUser")
    due = held.model_copy(update={"start": "2030-01-01T00:00:00"})
    waiting = [
        PointStatus(
            item.point,
            "queued",
            job=job,
            view=view,
            waiting=Waiting("will start", "words", "next {jobs}"),
        )
        for item, view in zip(overview.points, (held, due), strict=False)
    ]
    record = status_record(Overview([*waiting, *overview.points[2:]]))
    assert record["states"]["queued"] == 2 and sum(record["states"].values()) == 24
    assert [item["job"]["expected"] for item in record["points"][:2]] == [
        None,
        "2030-01-01T00:00:00",
    ]
    job_record = record["points"][0]["job"]
    assert [job_record[key] for key in ("waits", "waits_for", "next_command")] == [
        "words",
        "will start",
        "next 7",
    ]
    assert record["points"][-1]["reason"] == "out of memory"
