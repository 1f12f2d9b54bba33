"""How workers are distributed over nodes."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.parse import parse_study
from scalestudy.launch.queue.point_job import allocation, expand_for, layout
from scalestudy.launch.queue.site_profile import Site
from scalestudy.util.errors import UserError
from sites import point, site


def laid_out(strategy, workers, launch="", **keys):
    on = site(**keys)
    made = point(strategy, workers, on, launch)
    found = layout(made, on)
    return made.implementation, (
        found.nodes,
        found.tasks,
        found.tasks_per_node,
        found.cpus_per_task,
        found.gpus_per_node,
    )


GPUS = {"gpus_per_node": 2, "cpus_per_node": 24}
FOUR_GPUS = {"gpus_per_node": 4, "cpus_per_node": 67}
CORES = "cpus_per_worker = 12"


@pytest.mark.parametrize(
    ("strategy", "workers", "launch", "keys", "implementation", "found"),
    [
        # a GPU and its cores for each worker
        ("native", 1, CORES, GPUS, "single", (1, 1, 1, 12, 1)),
        ("native", 2, CORES, GPUS, "mirrored", (1, 1, 1, 24, 2)),
        ("native", 6, CORES, GPUS, "multiworker", (3, 6, 2, 12, 2)),
        ("mirrored", 2, CORES, GPUS, "mirrored", (1, 1, 1, 24, 2)),
        ("multiworker", 1, CORES, GPUS, "multiworker", (1, 1, 1, 12, 1)),
        ("horovod", 2, CORES, GPUS, "horovod", (1, 2, 2, 12, 2)),
        ("horovod", 14, CORES, GPUS, "horovod", (7, 14, 2, 12, 2)),
        ("virtual", 14, CORES, GPUS, "virtual", (1, 1, 1, 12, 1)),
        # without GPUs, as many on a node as its cores hold
        ("native", 8, "", {}, "mirrored", (1, 1, 1, 8, 0)),
        ("native", 9, "", {}, "multiworker", (2, 9, 5, 1, 0)),
        ("horovod", 8, "cpus_per_worker = 4", {}, "horovod", (4, 8, 2, 4, 0)),
        (
            "horovod",
            8,
            'device = "cpu"',
            {"gpus_per_node": 2},
            "horovod",
            (1, 8, 8, 1, 0),
        ),
        # a site may want fewer
        ("native", 2, "", {"tasks_per_node": 1}, "multiworker", (2, 2, 1, 1, 0)),
        ("horovod", 4, "", {"tasks_per_node": 8, **GPUS}, "horovod", (2, 4, 2, 12, 2)),
        # an uneven number is spread evenly
        ("horovod", 5, "", {"gpus_per_node": 4}, "horovod", (2, 5, 3, 2, 3)),
        ("horovod", 6, "", {"gpus_per_node": 4}, "horovod", (2, 6, 3, 2, 3)),
        # by default, a GPU's worker has its share of the node's cores
        ("native", 1, "", FOUR_GPUS, "single", (1, 1, 1, 16, 1)),
        ("native", 4, "", FOUR_GPUS, "mirrored", (1, 1, 1, 64, 4)),
        ("native", 8, "", FOUR_GPUS, "multiworker", (2, 8, 4, 16, 4)),
        ("horovod", 3, "", FOUR_GPUS, "horovod", (1, 3, 3, 16, 3)),
        ("virtual", 14, "", FOUR_GPUS, "virtual", (1, 1, 1, 16, 1)),
    ],
)
def test_nodes_tasks_cores_and_gpus_follow_from_the_workers(
    strategy, workers, launch, keys, implementation, found
):
    assert laid_out(strategy, workers, launch, **keys) == (implementation, found)


@given(
    st.sampled_from(["native", "horovod", "multiworker"]),
    st.integers(1, 64),
    st.integers(0, 8),
    st.integers(1, 4),
)
def test_every_layout_has_room_for_all_workers_on_its_nodes(
    strategy, workers, gpus, cpus
):
    on = site(cpus_per_node=32, gpus_per_node=gpus)
    made = point(strategy, workers, on, f"cpus_per_worker = {cpus}")
    found = layout(made, on)
    assert (
        found.tasks_per_node * (found.nodes - 1)
        < found.tasks
        <= found.tasks_per_node * found.nodes
    )
    assert found.tasks_per_node * found.cpus_per_task <= 32
    assert found.gpus_per_node <= gpus
    if gpus:
        assert found.nodes * found.gpus_per_node >= workers


@pytest.mark.parametrize(
    ("text", "keys", "told"),
    [
        (
            *('[sweep]\nstrategy = "mirrored"\nworkers = [1, 4]', GPUS),
            ("4 workers, which need 2 nodes", "study.toml, line 6"),
        ),
        (  # cores are never shared
            *("cpus_per_worker = 13\n[sweep]\nworkers = [2]", GPUS),
            ("2 workers of 13 cores on 24 cores", "study.toml, line 4"),
        ),
        ('device = "gpu"', {}, ("no GPU",)),
        ('[sweep]\n"launch.site" = ["a", "b"]', {}, ("study.toml, line 5",)),
    ],
)
def test_what_is_impossible_on_a_site_is_refused_with_its_line(text, keys, told):
    study = parse_study(
        f'task = "cnn"\n[launch]\non = "slurm"\n{text}', Path("study.toml")
    )
    with pytest.raises(UserError) as caught:
        expand_for(study, site(**keys))
    assert all(part in str(caught.value) for part in told)


def test_devices_in_a_sweep_are_laid_out_each_in_its_own_way():
    on = site(**GPUS)
    text = 'task = "cnn"\n[sweep]\nstrategy = "horovod"\nworkers = 8\nseed = 0\n"launch.device" = ["cpu", "gpu"]'
    points = expand_for(parse_study(text, Path("study.toml")), on)
    assert [
        (layout(each, on).nodes, layout(each, on).gpus_per_node) for each in points
    ] == [(1, 0), (4, 2)]


@pytest.mark.parametrize(
    ("keys", "whole"),
    [
        ({}, False),
        ({"bill": "core"}, False),
        ({"bill": "node"}, True),
        ({"bill": "node", "exclusive": False}, False),
    ],
)
def test_whole_nodes_are_asked_for_where_they_are_charged_anyway(keys, whole):
    assert site(**({"exclusive": None} | keys)).whole_nodes == whole


@pytest.mark.parametrize(
    ("keys", "counts"),
    [
        ({"exclusive": False}, ["3", "3", "2", "100", "1.50"]),
        ({}, ["3", "16", "2", "19", "8.00"]),
        ({"gpus_per_node": 4}, ["3", "8", "2", "38", "4.00"]),
        (
            {"gpus_per_node": 4, "exclusive": False, "gpu_request": "--gres=gpu:4"},
            ["3", "8", "2", "38", "4.00"],
        ),
        ({"time_limit": "infinite"}, ["3", "16", "2", "19"]),
        ({"bill": "node", "tasks_per_node": 1}, ["3", "24", "2", "12", "1.50"]),
    ],
)
def test_what_is_allocated_is_held_against_what_is_used(keys, counts):
    on = site(**({"time_limit": "00:30:00"} | keys))
    text = allocation(
        on,
        [
            layout(point("horovod", workers, on, "cpus_per_worker = 1"), on)
            for workers in (1, 2)
        ],
    )
    assert re.findall(r"\d+(?:\.\d+)?", text) == counts


def test_the_hours_of_a_start_and_of_all_starts_are_told_as_people_write_them():
    on = site(
        bill="gpu",
        gpus_per_node=8,
        cpus_per_node=8,
        exclusive=False,
        time_limit="1-00:00:00",
    )
    shape = layout(point("horovod", 8, on), on)
    one = allocation(on, [shape] * 6)
    assert one.endswith("at most 1,152 GPU-hours by their time limits.")
    several = allocation(on, [shape] * 6, requeues=2, submissions=[4] * 5 + [1])
    # 192 GPU-hours a start; three starts for each submission
    assert (
        "at most 1,152 GPU-hours per start" in several
        and "at most 12,096 GPU-hours" in several
    )
    assert "up to 2 times" in several and "up to 3 times" in several
    two_minutes = replace(
        layout(point("single", 1, on), on), seconds=120, gpus_per_node=0
    )
    assert "at most 2.00 core-minutes" in allocation(on, [two_minutes])


PLACEMENTS = """
task = "cnn"
[sweep]
strategy = "horovod"
workers = [1, 2, 4]
seed = 0
"launch.workers_per_node" = [4, 2]
[launch]
on = "slurm"
"""


def placed(on: Site, text: str = PLACEMENTS) -> dict[str, tuple[int, int]]:
    """Nodes and workers on a node of each point."""
    layouts = {
        each.name: layout(each, on)
        for each in expand_for(parse_study(text, Path("study.toml")), on)
    }
    return {
        name: (shape.nodes, shape.tasks_per_node) for name, shape in layouts.items()
    }


def test_placements_are_swept_in_one_study_and_equal_ones_are_run_once():
    found = placed(site(gpus_per_node=4, cpus_per_node=8))
    assert found == {
        "horovod-w1-s0-workers_per_node=4": (1, 1),
        "horovod-w2-s0-workers_per_node=4": (1, 2),
        "horovod-w4-s0-workers_per_node=4": (1, 4),
        "horovod-w4-s0-workers_per_node=2": (2, 2),
    }


@pytest.mark.parametrize(
    ("on", "text", "received"),
    [
        (site(gpus_per_node=2), PLACEMENTS, "launch.workers_per_node = 4"),
        (site(gpus_per_node=4), PLACEMENTS.replace("horovod", "mirrored"), "2 nodes"),
        (
            site(gpus_per_node=4),
            PLACEMENTS.replace('on = "slurm"', 'on = "local"'),
            "local",
        ),
    ],
)
def test_a_placement_that_is_impossible_is_refused(on, text, received):
    with pytest.raises(UserError) as error:
        placed(on, text)
    assert received in error.value.received
