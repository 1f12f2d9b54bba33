"""Whether cuDNN has code for the GPUs."""

import pytest

from scalestudy.features.check.builds import judge_cudnn
from scalestudy.hardware.devices import Gpu

V100 = Gpu(0, "GPU-a", "Tesla V100", "", capability=(7, 0))
T4 = Gpu(1, "GPU-b", "Tesla T4", "", capability=(7, 5))
UNKNOWN = Gpu(2, "GPU-c", "GPU", "")


def test_a_volta_beside_a_later_cudnn_fails_with_what_to_build():
    lines = judge_cudnn("n1", "9.11.0.98", [V100, V100, T4, UNKNOWN])
    assert [line.status for line in lines] == ["fail"]
    assert lines[0].seen == "cuDNN 9.11 has no code for this GPU (Tesla V100, 7.0)"
    assert "DEVICE=gpu-volta" in lines[0].action


@pytest.mark.parametrize(("version", "gpus"), [
    ("9.10.2.21", [V100]), ("9.28.0.42", [T4]), ("9.28.0.42", []), (None, [V100]), ("unreadable", [V100]),
])  # fmt: skip
def test_all_else_passes(version, gpus):
    assert judge_cudnn("n1", version, gpus) == []
