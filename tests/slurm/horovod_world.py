"""A worker that joins Horovod's world and leaves it: ours, but for the training.

`wrapper` in the site profile puts it before the worker's command. Horovod's library, its controller and the
rendezvous are the real ones; TensorFlow's libraries are loaded and its Python is not imported, so that many
ranks cost little.
"""

import ctypes
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from workers import work

from scalestudy import worker
from scalestudy.cluster.secret import secret_set
from scalestudy.strategies import rendezvous
from scalestudy.study.run_folder import RunFolder

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement


def train(path: Path, placement: "Placement", clock: object) -> int:
    """In the place of the worker's training: say which rank of how many Horovod takes this process for."""
    with secret_set(path, placement):
        rendezvous.join(placement)
        horovod = basics()
        horovod.init()
    print(f"Horovod: rank {horovod.rank()} of {horovod.size()}, node {horovod.cross_rank()}", flush=True)
    horovod.shutdown()  # once all ranks want it
    return work(RunFolder(path), {"seconds": 0}) if placement.rank == 0 else 0


def basics():
    """Horovod's own controls, without its operations for TensorFlow."""
    from horovod.common import process_sets
    from horovod.common.basics import HorovodBasics

    tensorflow = folder("tensorflow")
    for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2"):
        ctypes.CDLL(str(tensorflow / name), mode=ctypes.RTLD_GLOBAL)
    found = HorovodBasics(str(folder("horovod") / "tensorflow" / "__init__.py"), "mpi_lib")
    process_sets._setup(found)  # as horovod.tensorflow does
    return found


def folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


if __name__ == "__main__":
    worker._train = train
    code = worker.main(sys.argv[-1:])
    sys.stdout.flush()
    os._exit(code)
