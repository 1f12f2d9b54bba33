"""Measuring a PyTorch script: exchange of small values between its workers, and the clock of its device.

The script's process groups are not used. Small values go through the store of the processes' rendezvous.
"""

import contextlib
import datetime
import hashlib
import importlib
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Group
from scalestudy.engines.keras.fit_callback import keras_callback
from scalestudy.engines.rendezvous import find_address, listening, start_within
from scalestudy.engines.script_group import OneProcess
from scalestudy.util.errors import RunError, UserError


def lightning_callback(workers: Any, quality: str, better: str | None) -> Any:
    """Return a callback for Lightning's Trainer that measures epochs; see `Workers`."""
    name = "lightning.pytorch"
    if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
        name = "pytorch_lightning"  # its older name, whose classes are others
    package: Any = importlib.import_module(name)

    class LightningEpochs(package.Callback):  # type: ignore[misc]
        """Report the events of training to `workers`."""

        def on_train_start(self, trainer: Any, module: Any) -> None:
            workers.begin(trainer.max_epochs, module)

        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            workers.begin_epoch()

        def on_train_batch_end(
            self,
            trainer: Any,
            module: Any,
            outputs: Any,
            batch: Any,
            batch_idx: int,
        ) -> None:
            loss = outputs
            if isinstance(outputs, dict):
                loss = outputs.get("loss")
            workers.count(_rows(batch), loss)

        def on_validation_start(self, trainer: Any, module: Any) -> None:
            # Lightning validates a little before it trains, to find errors early.
            if not trainer.sanity_checking:
                workers.pause()

        def on_validation_end(self, trainer: Any, module: Any) -> None:
            if trainer.sanity_checking:
                return
            if quality not in trainer.callback_metrics:
                raise UserError(
                    f"a metric {quality!r} of the validation",
                    ", ".join(trainer.callback_metrics) or "none",
                    "Log it with self.log(...), or name another metric in the callback.",
                )
            workers.quality(quality, trainer.callback_metrics[quality], better=better)
            workers.resume_timing()

        def on_train_end(self, trainer: Any, module: Any) -> None:
            workers.end_epoch()

    return LightningEpochs()


def _rows(batch: Any) -> int:
    """Return the samples of a batch: the length of its first tensor that has one."""
    if isinstance(batch, torch.Tensor):
        return len(batch)
    parts = batch
    if isinstance(batch, Mapping):
        parts = batch.values()
    for part in parts:
        try:
            return _rows(part)
        except TypeError:
            continue
    raise TypeError("a batch without a tensor")


distributed: Any = torch.distributed  # mypy does not find its store classes


class StoreGroup(Group):
    """The processes of a script, which exchange small values through a TCPStore.

    Anybody who reaches the store can write to it: what is read there must not be able to run code.
    """

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement.rank, placement.size)
        # The script's own process group may use the same server; with a prefix, no key is one of its keys.
        self._store = distributed.PrefixStore("scalestudy", _store(placement))
        self._used = 0

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        rows = [np.frombuffer(row, values.dtype) for row in self._all(values.tobytes())]
        return np.sum(rows, axis=0, dtype=values.dtype).reshape(values.shape)

    def share_object(self, value: Any) -> Any:
        """Return rank 0's value of JSON on every rank; NumPy's numbers and arrays become Python's."""
        key = self._key()
        if self.rank == 0:
            self._store.set(
                key,
                json.dumps(value, default=lambda array: np.asarray(array).tolist()),
            )
        shared = json.loads(self._read(key))
        # The last reader deletes the value, which the server would keep until the script ends.
        if self._store.add(f"{key}/read", 1) == self.size:
            self._store.delete_key(key)
        return shared

    def to_first(self, value: Any) -> list[Any] | None:
        """Return all JSON values by rank on rank 0, which waits for them; elsewhere None, without waiting."""
        key = self._key()
        if self.rank:
            self._store.set(f"{key}/{self.rank}", json.dumps(value))
            return None
        values = [value]
        for rank in range(1, self.size):
            values.append(json.loads(self._read(f"{key}/{rank}")))
            self._store.delete_key(f"{key}/{rank}")
        return values

    def _all(self, mine: bytes) -> list[bytes]:
        key = self._key()
        self._store.set(f"{key}/{self.rank}", mine)
        rows = [self._read(f"{key}/{rank}") for rank in range(self.size)]
        if self._store.add(f"{key}/read", 1) == self.size:
            for rank in range(self.size):
                self._store.delete_key(f"{key}/{rank}")
        return rows

    def _key(self) -> str:
        self._used += 1
        return str(self._used)

    def _read(self, key: str) -> bytes:
        try:
            return bytes(self._store.get(key))
        except RuntimeError as error:
            raise RunError(
                f"all workers of the script at the same point within {start_within():.0f} s",
                str(error).splitlines()[0],
                "Call epochs on every worker. See the logs of the others.",
            ) from error


def _store(placement: Placement) -> Any:
    """Return the store of the script's processes, served by torchrun's agent or else by rank 0.

    A later `init_process_group` uses the same server at MASTER_PORT. It listens only on the address of the
    rendezvous, because a store has no authentication.
    """
    assert placement.port is not None
    host = os.environ["MASTER_ADDR"]
    timeout = datetime.timedelta(seconds=start_within())
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if agent or placement.rank:
        return distributed.TCPStore(
            host,
            placement.port,
            None,
            False,
            timeout,
            wait_for_workers=False,
        )
    # `multi_tenant`, so that the script's process group in this process uses the same server.
    given: dict[str, Any] = {}
    # An error means that the script's process group already runs a server there.
    with contextlib.suppress(OSError):
        server = listening(find_address(placement), placement.port)
        given["master_listen_fd"] = server.detach()
    return distributed.TCPStore(
        host,
        placement.port,
        None,
        True,
        timeout,
        wait_for_workers=False,
        multi_tenant=True,
        **given,
    )


class TorchScript:
    """A process of a PyTorch script that is measured.

    Attributes:
        group: The script's processes.
        device: "cpu", or this process's GPU as "cuda:1".
        threads: Threads per operation of PyTorch.

    Args:
        placement: Placement of this process; torchrun's variables must be set.
        gpu: Index of its GPU among the visible GPUs; None on CPUs.
        alone: Whether it joins no other processes.
    """

    lightning_callback = staticmethod(lightning_callback)
    keras_callback = staticmethod(keras_callback)

    def __init__(
        self,
        placement: Placement,
        gpu: int | None,
        *,
        alone: bool = False,
    ) -> None:
        self.group: Group = OneProcess()
        if placement.size > 1 and not alone:
            self.group = StoreGroup(placement)
        self.device = "cpu"
        if gpu is not None:
            self.device = f"cuda:{gpu}"
        self.threads = torch.get_num_threads()
        self._gpu = gpu is not None
        self._first = self._last = _now()
        self._events: list[torch.cuda.Event] = []

    def begin(self) -> None:
        """Wait for the device, then start timing."""
        if self._gpu:
            torch.cuda.synchronize(self.device)
            self._events = []
            self._record()
        self._first = self._last = _now()

    def mark(self) -> None:
        """Set the end of the timed interval after all work given to the device so far."""
        if self._gpu:
            # Only the last mark ends the interval.
            del self._events[1:]
            self._record()
        self._last = _now()

    def seconds(self) -> tuple[float, float]:
        """Return the seconds from `begin` to the last `mark`, and this process's CPU seconds in between.

        On a GPU the seconds are those of its own clock; this waits for it to reach the mark.
        """
        wall = self._last[0] - self._first[0]
        used = self._last[1] - self._first[1]
        if self._gpu:
            self._events[-1].synchronize()
            wall = self._events[0].elapsed_time(self._events[-1]) / 1e3
        return wall, used

    def scalar(self, value: Any) -> Any:
        """Return a number, or a scalar tensor that can be summed without waiting for the device."""
        if isinstance(value, torch.Tensor):
            return value.detach().double()
        return float(value)

    def parameters(self, model: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in model.parameters())

    def digest(self, model: torch.nn.Module) -> str:
        """Return the SHA-256 of a model's parameters, or "" if each process holds only a part of them."""
        words = hashlib.sha256()
        for parameter in model.parameters():
            # DTensors and the flat parameters of FSDP hold a part of each weight.
            if hasattr(parameter, "placements") or hasattr(parameter, "_is_flat_param"):
                return ""
            flat = parameter.detach().cpu().contiguous().flatten()
            words.update(flat.view(torch.uint8).numpy().tobytes())
        return words.hexdigest()

    def devices(self) -> list[str]:
        if not self._gpu:
            return ["cpu"]
        return [torch.cuda.get_device_name(self.device)]

    def build_record(self) -> dict[str, Any]:
        cudnn: Any = torch.backends.cudnn
        return {"torch": {"cuda": torch.version.cuda, "cudnn": cudnn.version()}}

    def communication(self) -> str | None:
        """Return the backend of the script's process group ("nccl", "gloo"), or None if there is none."""
        if self.group.size == 1 or not distributed.is_initialized():
            return None
        kind = "cuda" if self._gpu else "cpu"
        for part in distributed.get_backend_config().split(","):
            device, _, backend = part.partition(":")
            if device == kind and backend:
                return str(backend)
        return None

    def joined(self, model: Any) -> int | None:
        """Return the workers that PyTorch or Horovod connects; None if the script may use MPI itself."""
        # Looked up, not imported: only what the script itself has imported can have joined it.
        horovod = sys.modules.get("horovod.torch")
        if distributed.is_initialized():
            return int(distributed.get_world_size())
        if horovod is not None and horovod.is_initialized():
            return int(horovod.size())
        if "mpi4py" in sys.modules:
            return None
        return 1

    def _record(self) -> None:
        events: Any = torch.cuda.Event
        event = events(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        self._events.append(event)


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()
