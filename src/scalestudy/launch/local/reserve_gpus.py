"""GPUs that one run at a time may call its own, among all studies of this user on this machine.

As for cores and ports, a reservation is a lock on a file, held by the launcher, and ends with it. But no GPU
is handed out twice, since its memory may not hold two models: who comes second takes others, or waits. What a
run needs is taken at once or not at all, so that no two wait for each other.
"""

import contextlib
import json
import os
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from scalestudy.files import write_atomically
from scalestudy.launch.base import Note
from scalestudy.launch.local.reserve import take_own
from scalestudy.machine.devices import Gpu, lendable_gpus, visible_gpus
from scalestudy.private import private_folder
from scalestudy.study.point import Point

POLL = 0.5
"""Seconds between two tries."""


def reserved_gpus(
    held: contextlib.ExitStack, point: Point, variables: Mapping[str, str] = os.environ
) -> Generator[Note, None, list[str]]:
    """UUIDs of a point's own GPUs until `held` ends; none if it computes on CPUs.

    While others hold too many of them it waits, and tells who they are whenever that changes.

    Args:
        held: Takes the reservations.
        point: What is to be run.
        variables: Those of the launcher; what its CUDA_VISIBLE_DEVICES hides is not taken.
    """
    count = 1 if point.traits.one_device else point.workers
    look = lendable_gpus if count == 1 else visible_gpus
    available = [] if point.launch.device == "cpu" else look(variables)
    if len(available) < count or not all(gpu.uuid for gpu in available):
        return []  # on CPUs, or the worker will say what is missing; without UUIDs there is nothing to lock
    # CUDA shows a process no whole GPU beside a MIG instance, and an instance is slower than a GPU.
    available.sort(key=lambda gpu: gpu.uuid.startswith("MIG-"))
    told = ""
    while True:
        own, others = _taken(held, available, count, point)
        if own:
            return own
        if (now := _waiting(others, count, point)) != told:
            yield Note(now)
            told = now
        time.sleep(POLL)


def _taken(
    held: contextlib.ExitStack, available: Sequence[Gpu], count: int, point: Point
) -> tuple[list[str], list[str]]:
    """UUIDs of so many GPUs that are ours now, or none; and of those that others have."""
    own: list[str] = []
    others: list[str] = []
    with contextlib.ExitStack() as attempt:
        for gpu in available:
            if len(own) < count:
                free = take_own(attempt, _name(gpu.uuid))
                (own if free else others).append(gpu.uuid)
        if len(own) < count:
            return [], others
        for uuid in own:
            attempt.callback(_holder(uuid).unlink, missing_ok=True)
            who = f"{point.name} of study {point.study}, process {os.getpid()}"
            write_atomically(_holder(uuid), json.dumps({"who": who}))
        held.push(attempt.pop_all())
    return own, others


def _waiting(others: Sequence[str], count: int, point: Point) -> str:
    holders = [f"{uuid} is held by {_who(uuid)}" for uuid in others]
    return (
        f"{point.name} waits for {'a GPU' if count == 1 else f'{count} GPUs at once'}: {', '.join(holders)}."
    )


def _name(uuid: str) -> str:
    return f"gpu-{uuid.replace('/', '-')}"


def _holder(uuid: str) -> Path:
    return private_folder() / f"{_name(uuid)}.json"


def _who(uuid: str) -> str:
    try:
        return str(json.loads(_holder(uuid).read_text())["who"])
    except (OSError, ValueError, KeyError, TypeError):  # it has only just taken it, or just let go
        return "another run"
