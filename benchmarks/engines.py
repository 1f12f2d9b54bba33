"""Speed of each engine and strategy on CPUs, compared with a bare loop of its own library and each other.

`.venv/bin/python benchmarks/engines.py [--rounds 3] [--model unet] [--engine torch] [--precision float32]`.
All train on the same batches: the U-Net on 128 indents of 256 x 256 pixels (batch 8 per worker), the CNN on
6,000 images of 28 x 28 (batch 128), on one core and on two, in float32 and bfloat16. `gpu.py` describes the
method and the bare loops.
"""

import sys

from gpu import STRATEGIES, Model, arguments, compare
from scalestudy.hardware import cores

MODELS = {
    "unet": Model("unet", (256, 256), 128, 8),
    "cnn": Model("cnn", (28, 28), 6000, 128, epochs=4),
}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--engine", choices=list(STRATEGIES), action="append")
    parser.add_argument(
        "--precision", choices=["float32", "mixed_bfloat16"], action="append"
    )
    parser.set_defaults(device="cpu")
    options = parser.parse_args()
    if len(cores.granted()) < 2:
        sys.exit(
            f"expected 2 cores; received {len(cores.granted())}. Run it where two are free."
        )
    precisions = options.precision or ["float32", "mixed_bfloat16"]
    compare(MODELS, options.engine or list(STRATEGIES), precisions, [1, 2], options)


if __name__ == "__main__":
    main()
