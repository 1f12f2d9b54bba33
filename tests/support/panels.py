"""Synthetic studies for review panels, from one with all facts to one with none."""

from functools import cache

import synthetic
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.runs import Run
from scalestudy.features.proposal.subject import (
    ProposalSubject,
    RequestOptions,
    subject_of,
)
from scalestudy.store.records import GpuUse, NodeUse

ON_A_NODE = 4


def on_gpus(run: Run) -> Run:
    """The run with one GPU per worker, four GPUs per node."""
    result, count = run.result, run.result.workers
    nodes = -(-count // ON_A_NODE)
    gpus = [
        GpuUse(
            rank=rank,
            device=0,
            percent=80.0 + rank,
            memory_percent=40.0 + rank,
            memory_bytes=30 * 2**30,
            allocated_bytes=(20 + rank) * 2**30,
            watts=250.0 + rank,
            joules=250.0 * 3600 / count,
        )
        for rank in range(count)
    ]
    changes = {
        "gpus": gpus,
        "nodes": [NodeUse(rank=node * ON_A_NODE) for node in range(nodes)],
        "precision": "tf32",
        "usage_of": "run",
        "flops_per_sample": 1.25e9,
    }
    ranks = tuple(
        synthetic.rank(count).model_copy(
            update={
                "rank": rank,
                "host": f"node{rank // ON_A_NODE:02}",
                "devices": ["NVIDIA A100-SXM4-40GB"],
                "device_uuids": [f"GPU-{rank}"],
                "driver": "550.1",
            }
        )
        for rank in range(count)
    )
    return Run(result.model_copy(update=changes), run.epochs, run.folder, ranks)


@cache
def full() -> Findings:
    """Two strategies, four worker counts over two nodes, three seeds, per-worker and global batch."""
    growing = synthetic.seeded(
        (1, 2, 4, 8), ("horovod",), swept={"train.batch": "per-worker"}
    )
    fixed = [
        Run(
            run.result.model_copy(
                update={
                    "global_batch": 16,
                    "per_worker_batch": 16 // run.result.workers,
                }
            )
        )
        for run in synthetic.seeded(
            (1, 2, 4, 8), ("horovod",), swept={"train.batch": "global"}, serial=0.06
        )
    ]
    runs = [on_gpus(run) for run in [*growing, *fixed]]
    return analyse("full study", runs, synthetic.plan(runs))


@cache
def small() -> Findings:
    """One strategy on one and two workers, one seed."""
    runs = [
        synthetic.run("native", workers, throughput=90.0 * workers)
        for workers in (1, 2)
    ]
    return analyse("small", runs, synthetic.plan(runs))


@cache
def nothing() -> Findings:
    """A study without finished runs."""
    return analyse("nothing", [], synthetic.unfinished())


def subject(
    findings: Findings, options: RequestOptions | None = None
) -> ProposalSubject:
    """The subject of the proposal page."""
    found = subject_of(findings, options or RequestOptions())
    assert found is not None
    return found
