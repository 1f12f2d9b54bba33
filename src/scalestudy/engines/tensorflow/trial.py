"""Tests of TensorFlow's and Horovod's collectives, each in its own process; see `engines.exchange_trial`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.exchange_trial import ExchangeTrial, start
from scalestudy.engines.tensorflow.traits import ENGINE


class TensorFlowTrial(ExchangeTrial):
    """Compiled sums, as in training. Horovod always computes eager sums on the CPU."""

    def load(self) -> None:
        import tensorflow  # noqa: F401 (before all that imports it too)

    def build(self) -> dict[str, Any]:
        import tensorflow as tf

        info = tf.sysconfig.get_build_info()
        answer: dict[str, Any] = {
            "tensorflow": str(tf.__version__),
            "cuda": info.get("cuda_version") if info.get("is_cuda_build") else None,
            "gpus": len(tf.config.list_physical_devices("GPU")),
            "horovod": None,
            "horovod_error": None,
        }
        try:
            from scalestudy.engines.tensorflow.horovod import built

            answer["horovod"] = built()
        # Horovod is optional.
        except ModuleNotFoundError:
            pass
        except (
            Exception
        ) as error:  # a library that does not load raises errors of many types
            answer["horovod_error"] = f"{type(error).__name__}: {error}"
        return answer

    def total(
        self,
        group: Any,
        part: NDArray[np.float32],
        device: str,
    ) -> NDArray[np.float32]:
        import tensorflow as tf

        with tf.device(f"{device.upper()}:0"):
            total: NDArray[np.float32] = tf.function(group.tensor_sum, autograph=False)(
                tf.constant(part)
            ).numpy()
        return total

    def sums(
        self,
        group: Any,
        size: int,
        count: int,
        device: str,
    ) -> Callable[[], None]:
        import tensorflow as tf

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def chained(tensor: Any) -> Any:
            for _ in range(count):
                tensor = group.tensor_sum(tensor)
            return tensor

        zeros = tf.zeros([max(1, size // 4)], tf.float32)  # sums of zeros stay finite

        def call() -> None:
            chained(zeros)[:1].numpy()  # waits until the device has the last sum

        return call


if __name__ == "__main__":
    start(TensorFlowTrial(), ENGINE)
