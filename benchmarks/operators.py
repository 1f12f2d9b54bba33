"""Operators of a training step on PyTorch: of a Keras model, of a module, and of a plain loop.

`.venv/bin/python benchmarks/operators.py [--model unet] [--precision float32]` needs no GPU: each operator
that is no view is at least one kernel there. All three train the same network with Adam.
"""

import argparse
import tempfile
from collections import Counter
from typing import Any

import numpy as np
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_torch import NETWORKS, SMALL_BATCH, OurSteps, data_of, finish, plain_step

VIEWS = {
    "_reshape_alias",
    "_unsafe_view",
    "alias",
    "as_strided",
    "detach",
    "expand",
    "lift_fresh",
    "permute",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unsqueeze",
    "view",
    "view_as",
}
"""Operators without a kernel."""
READS = ("_local_scalar_dense", "nonzero", "equal", "is_nonzero")
"""Operators that wait for the device."""


class Counted(TorchDispatchMode):
    """Counts operators by name."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.operators[func.name().split("::")[1].split(".")[0]] += 1
        return func(*args, **(kwargs or {}))

    @property
    def kernels(self) -> Counter[str]:
        """The operators that are no views."""
        return Counter(
            {name: count for name, count in self.operators.items() if name not in VIEWS}
        )

    @property
    def waits(self) -> int:
        """How often the host reads from the device."""
        return sum(self.operators[name] for name in READS)


def counted(step: Any) -> Counted:
    """Count the operators of a step after two others, which make what is made once."""
    for _ in range(2):
        finish(step())
    with Counted() as seen:
        step()
    return seen


def counts(name: str, precision: str) -> dict[str, Counted]:
    """Operators of each way to train a network."""
    network = NETWORKS[name]
    errand = {"device": "cpu", "precision": precision}
    with tempfile.TemporaryDirectory() as folder:
        prepared = data_of(name, network.small, SMALL_BATCH, folder)
        batch = (
            np.array(prepared.inputs[:SMALL_BATCH]),
            np.array(prepared.targets[:SMALL_BATCH]),
        )
        return {
            "plain": counted(plain_step(network.task, errand, prepared, *batch)),
            "module": counted(OurSteps(network.task, errand, prepared, *batch)),
            "Keras model": counted(OurSteps(network.keras, errand, prepared, *batch)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=list(NETWORKS), action="append")
    parser.add_argument("--precision", default="float32")
    parser.add_argument(
        "--most", type=int, default=8, help="operators that are named for each way"
    )
    options = parser.parse_args()
    print(
        "| model | way | operators | x plain | reads | most |\n|---|---|---|---|---|---|"
    )
    for name in options.model or NETWORKS:
        found = counts(name, options.precision)
        plain = found["plain"].kernels.total()
        for way, seen in found.items():
            total = seen.kernels.total()
            most = ", ".join(
                f"{count} {kind}"
                for kind, count in seen.kernels.most_common(options.most)
            )
            print(
                f"| {name} | {way} | {total} | {total / plain:.2f} | {seen.waits} | {most} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
