"""Cost of a row: sums over processes and nodes, means over runs, blanks for missing measurements; peaks."""

import re
from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis import costs as analysis_costs
from scalestudy.analysis.costs import device_peak, may_have_tf32
from scalestudy.store.records import GpuUse, NodeUse

JOULES = 7200.0


def run(seed=0, *, workers=2, unmeasured=None, devices=None, **changes):
    """A run of two processes on two nodes by default; `changes` replaces fields of its result."""
    made = synthetic.run("horovod" if workers > 1 else "single", workers, seed)
    usage = {
        "gpus": [GpuUse(rank=r, device=0, joules=JOULES) for r in range(workers)],
        "nodes": [NodeUse(rank=r) for r in range(workers)],
        "usage_of": "run",
        "wall_seconds": 3600.0,
        **changes,
    }
    rank = synthetic.rank(workers).model_copy(update={"unmeasured": unmeasured or {}})
    if devices:
        rank = rank.model_copy(
            update={"devices": devices, "device_uuids": ["GPU-0"] * len(devices)}
        )
    return replace(synthetic.changed(made, **usage), ranks=(rank,))


def row(*runs):
    return synthetic.summary(runs).row(0, named=True)


def test_energy_and_hours_add_up_over_gpus_and_nodes_and_are_means_over_runs():
    more = [GpuUse(rank=r, device=0, joules=2 * JOULES) for r in range(2)]
    costs = row(run(), run(1, gpus=more))
    assert (costs["gpu_joules"], costs["watt_hours"]) == (21600, 6)
    assert (costs["node_hours"], costs["device_hours"]) == (2, 2)


def test_what_one_gpu_has_not_told_is_blank_and_no_smaller_sum():
    gpus = [{"percent": 80.0, "joules": 1000.0}, {"percent": 60.0}]
    costs = row(
        run(gpus=[GpuUse(rank=rank, device=0, **use) for rank, use in enumerate(gpus)])
    )
    assert (costs["gpu_joules"], costs["gpu_percent"]) == (None, 70)
    plain = row(synthetic.run())
    assert {plain[name] for name in ("watt_hours", "node_hours", "gpu_joules")} == {
        None
    }


def test_a_resumed_run_whose_earlier_processes_are_unknown_is_blank_and_says_so():
    costs = row(run(restarts=1, usage_of="last process"))
    assert costs["gpu_joules"] is costs["watt_hours"] is None
    assert "only the last process is known" in costs["unmeasured"]
    whole = row(run(restarts=1))
    assert (whole["gpu_joules"], whole["unmeasured"]) == (14400, None)


def test_mfu_is_the_share_of_all_devices_peak():
    usage = {
        "devices": ["Tesla V100-SXM2-32GB"],
        "flops_per_sample": 1.57e9,
        "throughput": 1000.0,
    }
    costs = row(run(precision="float32", **usage))
    assert costs["flops_per_second"] == pytest.approx(1.57e12)
    assert costs["peak_flops_per_second"] == pytest.approx(15.7e12)
    assert costs["mfu"] == pytest.approx(0.05)
    unknown = row(run(precision="tf32", **usage))
    assert (unknown["mfu"], unknown["flops_per_second"]) == (
        None,
        pytest.approx(1.57e12),
    )
    assert "Tesla V100-SXM2-32GB in tf32" in unknown["unmeasured"]


def test_cpus_and_unlike_gpus_have_no_peak():
    usage = {"flops_per_sample": 1e9, "throughput": 1000.0, "precision": "float32"}
    for devices in (None, ["NVIDIA A40", "NVIDIA L4"]):
        costs = row(run(devices=devices, **usage))
        assert costs["mfu"] is None and costs["unmeasured"].startswith("mfu: ")


def test_what_was_not_counted_is_named():
    costs = row(
        run(flops_uncounted=["CudnnRNN"], unmeasured={"gpu_joules": "no permission"})
    )
    assert costs["flops_per_sample"] is None
    assert (
        "gpu_joules: no permission" in costs["unmeasured"]
        and "CudnnRNN" in costs["unmeasured"]
    )


def test_virtual_workers_are_one_device_and_have_no_rate():
    costs = row(run(implementation="virtual", flops_per_sample=1.0))
    assert (costs["device_hours"], costs["flops_per_second"]) == (1, None)


@pytest.mark.parametrize(
    ("name", "kind", "tera"),
    [
        ("Tesla V100-SXM2-16GB", "float16", 125),
        ("Tesla V100-PCIE-32GB", "float16", 112),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156),
        ("NVIDIA A100 80GB PCIe", "bfloat16", 312),
        ("NVIDIA H100 80GB HBM3", "float32", 67),
        ("NVIDIA H200 NVL", "bfloat16", 835.5),
        ("NVIDIA A100-SXM-64GB", "tf32", 179),
        ("NVIDIA GB200", "bfloat16", 2500),
        ("AMD Instinct MI300A", "tf32", 490.3),
        ("NVIDIA L40", "float16", 181.05),
        ("Tesla T4", "float32", 8.1),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "float32", None),
        ("Tesla V100-SXM2-16GB", "tf32", None),
        ("NVIDIA T400", "float32", None),
        ("NVIDIA H20", "float32", None),
        ("", "float32", None),
    ],
)
def test_a_card_is_known_by_its_whole_name_and_no_peak_is_guessed(name, kind, tera):
    assert device_peak(name, kind) == (tera and tera * 1e12)


def test_every_entry_has_its_source_and_no_card_has_two():
    table = analysis_costs._table()
    for entry in table:
        assert entry["source"] and entry.keys() <= {
            "name",
            "source",
            *analysis_costs.KINDS.values(),
        }
        assert (
            entry.get("float16", 0) >= entry["float32"]
            and entry.get("tf32", 99999) >= entry["float32"]
        )
    names = [
        "A100-SXM4-40GB",
        "L4",
        "L40",
        "L40S",
        "H200",
        "H200 NVL",
        "V100S-PCIE-32GB",
        "A10",
        "A40",
    ]
    for name in names:
        assert sum(bool(re.fullmatch(str(entry["name"]), name)) for entry in table) == 1


def test_only_cards_that_are_known_to_have_no_tf32_have_none():
    older = ("Tesla V100-SXM2-16GB", "NVIDIA T4", "AMD Instinct MI250X")
    assert not any(map(may_have_tf32, older))
    assert may_have_tf32("NVIDIA H100 PCIe") and may_have_tf32("a card of next year")
