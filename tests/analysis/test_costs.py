"""What a row cost: sums over processes and nodes, means over runs, blanks for what was not told."""

from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.costs import largest_batch
from scalestudy.study.usage import GpuUse, NodeUse, ProcessUse

NODE = {"sent_bytes": 10, "received_bytes": 30, "loopback_bytes": 7, "cpu_joules": 7200.0}


def run(seed=0, *, workers=2, unmeasured=None, devices=None, **changes):
    """A run of two processes on two nodes, save where `changes` of its result say otherwise."""
    found = synthetic.run("horovod" if workers > 1 else "single", workers, seed)
    told = {
        "processes": [ProcessUse(rank=r, read_bytes=100, written_bytes=8) for r in range(workers)],
        "nodes": [NodeUse(rank=r, **NODE) for r in range(workers)],
        "usage_of": "run", "wall_seconds": 3600.0, "better": "higher", "bounded": True,
        **changes,
    }  # fmt: skip
    rank = synthetic.rank(workers).model_copy(update={"unmeasured": unmeasured or {}})
    if devices:
        rank = rank.model_copy(update={"devices": devices, "device_uuids": ["GPU-0"] * len(devices)})
    return replace(found, result=found.result.model_copy(update=told), ranks=(rank,))


def row(*runs):
    return synthetic.summary(runs).row(0, named=True)


def test_bytes_and_energy_add_up_over_processes_and_nodes_and_are_means_over_runs():
    more = [NodeUse(rank=r, **{**NODE, "sent_bytes": 20}) for r in range(2)]
    found = row(run(), run(1, nodes=more))
    assert (found["network_sent_bytes"], found["network_received_bytes"]) == (30, 60)
    assert (found["loopback_bytes"], found["read_bytes"], found["written_bytes"]) == (14, 200, 16)
    assert (found["cpu_joules"], found["watt_hours"], found["energy_of"]) == (14400, 4, "cpus")


def test_energy_says_what_it_is_of():
    gpus = [GpuUse(rank=r, device=0, joules=3600.0) for r in range(2)]
    both = row(run(gpus=gpus))
    assert (both["watt_hours"], both["energy_of"]) == (6, "gpus + cpus")
    dumb = [NodeUse(rank=0), NodeUse(rank=1)]
    cards = row(run(gpus=gpus, nodes=dumb))
    assert (cards["watt_hours"], cards["energy_of"], cards["cpu_joules"]) == (2, "gpus", None)
    none = row(run(nodes=dumb))
    assert (none["watt_hours"], none["energy_of"], none["watt_hours_per_quality"]) == (None,) * 3


def test_one_node_that_has_not_told_leaves_a_blank_and_no_smaller_sum():
    found = row(run(nodes=[NodeUse(rank=0, **NODE), NodeUse(rank=1, **{**NODE, "cpu_joules": None})]))
    assert (found["cpu_joules"], found["network_sent_bytes"]) == (None, 20)
    assert row(run(), run(1, processes=[]))["read_bytes"] is None


def test_a_resumed_run_whose_earlier_processes_are_unknown_is_blank_and_says_so():
    found = row(run(restarts=1, usage_of="last process"))
    assert (found["cpu_joules"], found["network_sent_bytes"], found["read_bytes"]) == (None,) * 3
    assert "of a resumed run only the last process is known" in found["unmeasured"]
    whole = row(run(restarts=1))
    assert (whole["cpu_joules"], whole["unmeasured"]) == (14400, None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"quality": 0.5}, 8), ({"quality": 0.0}, None), ({"better": "lower", "quality": 0.5}, None),
        ({"bounded": False, "quality": 0.5}, None), ({"quality": float("nan")}, None),
    ],
)  # fmt: skip
def test_energy_per_quality_is_told_of_shares_of_which_more_is_better(changes, expected):
    assert row(run(**changes))["watt_hours_per_quality"] == expected


def test_hours_are_from_the_start_to_the_result():
    found = row(run())
    assert (found["node_hours"], found["device_hours"]) == (2, 2)
    old = row(run(nodes=[]))
    assert (old["node_hours"], old["device_hours"]) == (None, 2)


def test_mfu_is_the_share_of_all_devices_peak():
    told = {"devices": ["Tesla V100-SXM2-32GB"], "flops_per_sample": 1.57e9, "throughput": 1000.0}
    found = row(run(precision="float32", **told))
    assert found["flops_per_second"] == pytest.approx(1.57e12)
    assert found["peak_flops_per_second"] == pytest.approx(15.7e12)
    assert found["mfu"] == pytest.approx(0.05)
    unknown = row(run(precision="tf32", **told))
    assert (unknown["mfu"], unknown["flops_per_second"]) == (None, pytest.approx(1.57e12))
    assert "no peak of Tesla V100-SXM2-32GB in tf32 is known" in unknown["unmeasured"]


def test_cpus_and_unlike_gpus_have_no_peak_and_say_so():
    told = {"flops_per_sample": 1.0, "precision": "float32"}
    assert row(run(**told))["unmeasured"] == "mfu: the peak of CPUs is unknown"
    unlike = row(run(devices=["NVIDIA A40", "NVIDIA L4"], **told))
    assert (unlike["mfu"], "unlike GPUs (NVIDIA A40, NVIDIA L4)" in unlike["unmeasured"]) == (None, True)


def test_a_peak_that_the_site_states_goes_before_all_others():
    told = run(flops_per_sample=1e9, throughput=1000.0, precision="float32")
    stated = [rank.model_copy(update={"peak_flops": 2e12}) for rank in told.ranks]
    found = row(replace(told, ranks=tuple(stated)))
    assert (found["peak_flops_per_second"], found["mfu"]) == (2e12, pytest.approx(1e12 / 2 / 2e12))


def test_what_was_not_counted_is_named():
    found = row(run(flops_uncounted=["CudnnRNN"], unmeasured={"cpu_joules": "no permission"}))
    assert found["flops_per_sample"] is None
    assert found["unmeasured"] == (
        "cpu_joules: no permission; flops_per_sample: of CudnnRNN the products are not counted"
    )


def test_virtual_workers_are_one_device_and_have_no_rate():
    found = row(run(implementation="virtual", flops_per_sample=1.0))
    assert (found["device_hours"], found["flops_per_second"]) == (1, None)


def test_older_folders_have_blanks_and_no_zeros():
    found = row(synthetic.run())
    assert {found[name] for name in ("read_bytes", "loopback_bytes", "watt_hours", "node_hours")} == {None}
    assert (found["cpu_percent"], found["peak_memory_bytes"]) == (96, 900_000_000)


def on_gpus(*uses, seed=0, **changes):
    run = synthetic.run(seed=seed)
    gpus = [GpuUse(rank=rank, device=0, **use) for rank, use in enumerate(uses)]
    return replace(run, result=run.result.model_copy(update={"gpus": gpus, **changes}))


GOOD = {"percent": 80.0, "joules": 1000.0, "energy_from": "counter"}
OTHER = {"percent": 60.0, "joules": 3000.0, "energy_from": "power"}


def test_energy_is_of_all_gpus_of_one_training_and_utilisation_of_each():
    found = row(on_gpus(GOOD, OTHER), on_gpus(GOOD, GOOD, seed=1))
    assert (found["gpu_joules"], found["gpu_percent"]) == (pytest.approx(3000), pytest.approx(75))


def test_one_gpu_that_has_not_told_leaves_a_blank():
    found = row(on_gpus(GOOD, {"percent": 50.0}))
    assert (found["gpu_joules"], found["gpu_percent"]) == (None, 65)
    assert row(on_gpus(GOOD, {"joules": 1.0}))["gpu_percent"] is None


def test_a_resumed_run_does_not_know_its_energy():
    assert row(on_gpus(GOOD, restarts=1))["gpu_joules"] is None


def test_cpus_have_none_and_the_columns_stay():
    found = row(synthetic.run())
    assert (found["gpu_joules"], found["gpu_percent"]) == (None, None)


MIB = 2**20


def batch_run(batch, peak, *, limit=1000 * MIB, workers=1, seed=0):
    """A run on CPUs whose processes share `limit` on one node."""
    found = synthetic.run("horovod", workers, seed, swept={"train.batch_size": batch})
    ranks = [
        synthetic.rank(workers).model_copy(update={"rank": rank, "memory_limit_bytes": limit})
        for rank in range(workers)
    ]
    changes = {"per_worker_batch": batch, "peak_memory_bytes": [peak] * workers}
    return replace(found, result=found.result.model_copy(update=changes), ranks=tuple(ranks))


def batch_on_gpu(batch, allocated, total=1000 * MIB):
    use = GpuUse(rank=0, device=0, allocated_bytes=allocated, memory_total_bytes=total)
    found = batch_run(batch, 1)
    return replace(found, result=found.result.model_copy(update={"gpus": [use]}))


def test_memory_is_a_line_in_the_batch_that_ends_where_memory_does():
    runs = [batch_run(batch, (200 + 2 * batch) * MIB) for batch in (16, 32, 64)]
    assert largest_batch(runs) == 400


def test_processes_of_one_node_share_its_memory():
    runs = [batch_run(batch, (200 + 2 * batch) * MIB, workers=2) for batch in (16, 64)]
    assert largest_batch(runs) == 150


def test_on_gpus_it_is_the_memory_given_to_tensors():
    assert largest_batch([batch_on_gpu(batch, (100 + batch) * MIB) for batch in (8, 32)]) == 900
    unknown = [batch_on_gpu(8, 108 * MIB, total=None), batch_on_gpu(32, 132 * MIB)]
    assert largest_batch(unknown) is None


def test_a_batch_that_did_fit_is_never_above_the_estimate():
    curved = [batch_run(1, 100 * MIB), batch_run(2, 600 * MIB), batch_run(64, 900 * MIB)]
    assert largest_batch(curved) >= 64


@pytest.mark.parametrize(
    "runs",
    [
        [batch_run(32, 300 * MIB), batch_run(32, 310 * MIB, seed=1)],
        [batch_run(16, 300 * MIB), batch_run(32, 300 * MIB)],
        [batch_run(16, 300 * MIB, limit=None), batch_run(32, 400 * MIB)],
        [batch_run(16, 1100 * MIB), batch_run(32, 1200 * MIB)],
        [],
    ],
)  # fmt: skip
def test_without_two_sizes_without_growth_or_without_a_limit_it_is_unknown(runs):
    assert largest_batch(runs) is None


def test_all_rows_that_differ_in_the_batch_alone_have_it_and_others_do_not():
    runs = [batch_run(batch, (200 + 2 * batch) * MIB) for batch in (16, 32)]
    table = synthetic.summary([*runs, batch_run(16, 300 * MIB, workers=2)])
    assert table["largest_batch"].to_list() == [400, None, 400]
