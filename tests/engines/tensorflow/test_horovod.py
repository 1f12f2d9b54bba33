"""Where Horovod's processes sum tensors in host memory."""

import numpy as np
import pytest

from scalestudy.engines.tensorflow.installation import library_file as horovod_built

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not horovod_built(), reason="Horovod is not built here"),
]


def test_what_lies_in_host_memory_is_summed_there_wherever_the_process_computes(framework, monkeypatch):
    """With NCCL, processes that share a GPU by mistake could not report it to each other."""
    from scalestudy.engines.tensorflow import horovod

    places = []

    def allreduce(tensor, **how):
        total = tensor + tensor  # placed where Horovod's operation would be
        places.append((tensor.device[-5:], total.device[-5:]))
        return total

    monkeypatch.setattr(horovod.hvd, "allreduce", allreduce)
    with framework.device("CPU:1"):  # like a GPU as the default device
        total = horovod.HorovodGroup(0, 2).host_sum(np.array([3, 4], np.int64))
    assert total.tolist() == [6, 8]
    assert places == [("CPU:0", "CPU:0")]
