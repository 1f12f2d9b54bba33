"""Peak performance of devices, looked up by the name that the driver reports."""

import re

import pytest

from scalestudy.analysis import peaks
from scalestudy.analysis.peaks import device_peak, may_have_tf32


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
    ],
)
def test_a_card_is_known_by_its_whole_name(name, kind, tera):
    assert device_peak(name, kind) == tera * 1e12


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "float32"),
        ("Tesla V100-SXM2-16GB", "tf32"),
        ("NVIDIA T400", "float32"),
        ("NVIDIA H20", "float32"),
        ("", "float32"),
    ],
)
def test_no_peak_is_guessed(name, kind):
    assert device_peak(name, kind) is None


def test_every_entry_has_its_source_and_no_card_has_two():
    table = peaks._table()
    for entry in table:
        assert entry["source"] and entry.keys() <= {"name", "source", *peaks.KINDS.values()}
        assert entry.get("float16", 0) >= entry["float32"] and entry.get("tf32", 99999) >= entry["float32"]
    names = ["A100-SXM4-40GB", "L4", "L40", "L40S", "H200", "H200 NVL", "V100S-PCIE-32GB", "A10", "A40"]
    for name in names:
        assert sum(bool(re.fullmatch(str(entry["name"]), name)) for entry in table) == 1


def test_only_cards_that_are_known_to_have_no_tf32_have_none():
    older = ("Tesla V100-SXM2-16GB", "NVIDIA T4", "AMD Instinct MI250X")
    assert not any(map(may_have_tf32, older))
    assert may_have_tf32("NVIDIA H100 PCIe") and may_have_tf32("a card of next year")
