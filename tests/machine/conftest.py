"""Trees of the kernel and a stand-in for NVML, for the tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def nvml(monkeypatch):
    """Puts cards into this machine: `nvml(card, card)`; without any, a driver that finds none."""
    from fake_nvml import FakeNvml

    def install(*cards, **more):
        fake = FakeNvml(*cards, **more)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        return fake

    return install
