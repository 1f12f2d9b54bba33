"""Modules that compute something else on each rank are refused by name, when it happens."""

import importlib.util

import pytest

from equality import case, prepared_sets, start
from scalestudy.launch import reserve

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]

TASK = """
import torch.distributed as dist
from torch import nn

kind, engine, data = "classes", "torch", "digits"
loss, metrics = nn.CrossEntropyLoss(), ["accuracy"]

class Net(nn.Module):
    def __init__(self, size, classes):
        super().__init__()
        self.first, self.second = nn.Linear(size, classes), nn.Linear(size, classes)

    def forward(self, x):
        x, rank = x.flatten(1), dist.get_rank()
        return {}

def model(data):
    return Net(data.input_shape[0] ** 2, data.classes)
"""


@pytest.mark.parametrize(
    ("outputs", "named"),
    [
        ("(self.first(x) + self.second(x)) * (1 + rank)", ["rank 1", "rank 0", "forward"]),
        (
            "self.first(x) + (self.second(x) if rank == 0 or not self.training else 0)",
            ["rank 1", "second.weight", "second.bias", "forward"],
        ),
    ],
)
def test_what_depends_on_the_rank_is_named(tmp_path, outputs, named):
    made = case(prepared_sets(tmp_path, ["plain"]), "plain", "ddp", 2, "float64")
    task = tmp_path / "ranks.py"
    task.write_text(TASK.replace("{}", outputs))
    made["point"]["task"] = str(task)
    with reserve.ports(3) as port:
        processes = start([made], 2, port, tmp_path)
        texts = [process.communicate(timeout=300)[0] for process in processes]
    assert processes[1].returncode != 0
    error = next(line for line in reversed(texts[1].splitlines()) if "Error: Expected" in line)
    assert [name for name in named if name in error] == named
