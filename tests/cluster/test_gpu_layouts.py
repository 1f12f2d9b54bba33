"""How launchers distribute a node's GPUs among its tasks: each layout is used correctly or refused.

The tasks' variables were captured from Slurm (tests/slurm/test_gpu_layouts.py compares them with Slurm);
a stand-in for NVML reports two GPUs per node.
"""

import json
from pathlib import Path

import pytest

from fake_nvml import NO_PERMISSION, cards
from scalestudy.cluster.placement import Placement, check_placement
from scalestudy.cluster.resolve import resolve
from scalestudy.cluster.worker_environment import own_gpus
from scalestudy.hardware.devices import visible_gpus
from scalestudy.plugins.strategies import traits
from scalestudy.util.errors import UserError

CAPTURED = json.loads((Path(__file__).parent / "captured_gpus.json").read_text())
"""Tasks on two nodes, two per node, by srun options in a job with `--gres=gpu:2`."""


def dealt(environment: dict[str, str]) -> list[str]:
    """Return the GPU of a task as the worker determines it."""
    place, gpus = resolve(environment), visible_gpus(environment)
    check_placement(place, strategy=traits("horovod"), workers=4, gpus=len(gpus))
    return own_gpus(environment, gpus, local_rank=place.gpu_place(len(gpus)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--gpu-bind=closest", ["GPU-a0", "GPU-b1"]),  # all visible
        ("--gpu-bind=none", ["GPU-a0", "GPU-b1"]),  # no variable set
        ("--gpus-per-task=1", ["GPU-a0", "GPU-b1"]),
        ("--gpu-bind=single:1", ["GPU-a0", "GPU-b1"]),
        ("--gpu-bind=map_gpu:1,0", ["GPU-b1", "GPU-a0"]),
        ("--gpu-bind=mask_gpu:0x1,0x2", ["GPU-a0", "GPU-b1"]),
    ],
)
def test_each_task_computes_on_a_gpu_of_its_own(nvml, options, expected):
    nvml(*cards(2))
    assert [dealt(task) for task in CAPTURED[options]] == [
        [gpu] for gpu in expected * 2
    ]


@pytest.mark.parametrize("options", ["--gpus-per-task=1", "--gpu-bind=single:1"])
def test_where_cgroups_hide_the_others_each_task_finds_its_own_as_the_first(
    nvml, options
):
    for task in CAPTURED[options][:2]:
        hidden = cards(2)
        hidden[1 - int(task["SLURM_LOCALID"])].fails["*"] = NO_PERMISSION
        nvml(*hidden)
        own = ("GPU-a0", "GPU-b1")[int(task["SLURM_LOCALID"])]
        assert dealt(task | {"CUDA_VISIBLE_DEVICES": "0"}) == [own]


def test_fewer_gpus_on_the_node_than_tasks_are_refused(nvml):
    nvml(*cards(2))
    with pytest.raises(UserError, match="1 visible, 1 granted on the node"):
        dealt(CAPTURED["--gres=gpu:1"][1])


@pytest.mark.parametrize(
    ("source", "passes"), [("pbs", True), ("openmpi", True), ("torchrun", False)]
)
def test_a_wrapper_may_show_each_rank_its_own_under_launchers_that_say_nothing_of_gpus(
    source, passes
):
    place = Placement(1, 2, 1, 2, 0, ("n", "n"), source)
    if passes:
        check_placement(place, strategy=traits("horovod"), workers=2, gpus=1)
        assert place.gpu_place(1) == 0
    else:
        with pytest.raises(UserError, match="1 visible"):
            check_placement(place, strategy=traits("horovod"), workers=2, gpus=1)


def test_a_process_of_several_workers_must_see_all_of_them(nvml):
    nvml(*cards(2))
    task = CAPTURED["--gpus-per-task=1"][0]
    alone = Placement(0, 1, 0, 1, 0, ("node1",), "slurm", gpus=2)
    with pytest.raises(UserError, match="1 visible, 2 granted"):
        check_placement(
            alone, strategy=traits("mirrored"), workers=2, gpus=len(visible_gpus(task))
        )
