"""Tests of PyTorch's collectives, each in its own process; see `engines.exchange_trial`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.exchange_trial import ExchangeTrial, start
from scalestudy.engines.torch.traits import ENGINE


class TorchTrial(ExchangeTrial):
    """Sums by torch.distributed, as for gradients."""

    def load(self) -> None:
        import torch  # noqa: F401

    def build(self) -> dict[str, Any]:
        import torch

        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "gpus": torch.cuda.device_count(),
        }

    def total(
        self,
        group: Any,
        part: NDArray[np.float32],
        device: str,
    ) -> NDArray[np.float32]:
        import torch
        import torch.distributed as dist

        total = torch.from_numpy(part.copy()).to(_place(device))
        dist.all_reduce(total)
        summed: NDArray[np.float32] = total.cpu().numpy()
        return summed

    def sums(
        self,
        group: Any,
        size: int,
        count: int,
        device: str,
    ) -> Callable[[], None]:
        import torch
        import torch.distributed as dist

        # Sums of zeros stay finite, however often they are summed.
        zeros = torch.zeros(max(1, size // 4), device=_place(device))

        def call() -> None:
            for _ in range(count):
                dist.all_reduce(zeros)
            zeros[:1].cpu()  # waits until the device has the last sum

        return call


def _place(device: str) -> str:
    return "cuda:0" if device == "gpu" else "cpu"


if __name__ == "__main__":
    start(TorchTrial(), ENGINE)
