"""The largest batch that would fit, estimated from the memory of runs."""

from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.frames import summary
from scalestudy.analysis.largest_batch import largest_batch
from scalestudy.study.usage import GpuUse

MIB = 2**20


def run(batch, peak, *, limit=1000 * MIB, workers=1, seed=0):
    """A run on CPUs whose processes share `limit` on one node."""
    found = synthetic.run("horovod", workers, seed, swept={"train.batch_size": batch})
    ranks = [
        synthetic.rank(workers).model_copy(update={"rank": rank, "memory_limit_bytes": limit})
        for rank in range(workers)
    ]
    changes = {"per_worker_batch": batch, "peak_memory_bytes": [peak] * workers}
    return replace(found, result=found.result.model_copy(update=changes), ranks=tuple(ranks))


def on_gpu(batch, allocated, total=1000 * MIB):
    use = GpuUse(rank=0, device=0, allocated_bytes=allocated, memory_total_bytes=total)
    found = run(batch, 1)
    return replace(found, result=found.result.model_copy(update={"gpus": [use]}))


def test_memory_is_a_line_in_the_batch_that_ends_where_memory_does():
    runs = [run(batch, (200 + 2 * batch) * MIB) for batch in (16, 32, 64)]
    assert largest_batch(runs) == 400


def test_processes_of_one_node_share_its_memory():
    runs = [run(batch, (200 + 2 * batch) * MIB, workers=2) for batch in (16, 64)]
    assert largest_batch(runs) == 150


def test_on_gpus_it_is_the_memory_given_to_tensors():
    assert largest_batch([on_gpu(batch, (100 + batch) * MIB) for batch in (8, 32)]) == 900
    unknown = [on_gpu(8, 108 * MIB, total=None), on_gpu(32, 132 * MIB)]
    assert largest_batch(unknown) is None


def test_a_batch_that_did_fit_is_never_above_the_estimate():
    curved = [run(1, 100 * MIB), run(2, 600 * MIB), run(64, 900 * MIB)]
    assert largest_batch(curved) >= 64


@pytest.mark.parametrize(
    "runs",
    [
        [run(32, 300 * MIB), run(32, 310 * MIB, seed=1)], [run(16, 300 * MIB), run(32, 300 * MIB)],
        [run(16, 300 * MIB, limit=None), run(32, 400 * MIB)], [run(16, 1100 * MIB), run(32, 1200 * MIB)], [],
    ],
)  # fmt: skip
def test_without_two_sizes_without_growth_or_without_a_limit_it_is_unknown(runs):
    assert largest_batch(runs) is None


def test_all_rows_that_differ_in_the_batch_alone_have_it_and_others_do_not():
    runs = [run(batch, (200 + 2 * batch) * MIB) for batch in (16, 32)]
    table = summary([*runs, run(16, 300 * MIB, workers=2)])
    assert table["largest_batch"].to_list() == [400, None, 400]
