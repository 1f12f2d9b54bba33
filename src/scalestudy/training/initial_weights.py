"""Equal initial weights on engines that draw different numbers: all runs of a seed read one file."""

import io
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from scalestudy.engines.group import Group
from scalestudy.engines.interface import Trainer
from scalestudy.training.agreement import digests_of_model
from scalestudy.util.files import make_inside, write_atomically
from scalestudy.util.locks import take


def begin_alike(trainer: Trainer, group: Group, file: Path) -> None:
    """Let training begin with the weights in `file`, which the first run writes. Every rank must call this.

    A model of other shapes, as a swept setting may give, has a file of its own beside it.

    Raises:
        OSError: If the file cannot be read or written.
    """
    # Other ranks may be on nodes that see the file later; they get the values from rank 0.
    if group.rank == 0:
        shapes, _ = digests_of_model(trainer)
        file = file.with_name(f"{file.stem}-{shapes[:8]}.npz")
        make_inside(file.parent)
        # Runs of a seed may start at once; where locks are not supported, writing is atomic.
        with take(file.with_suffix(".lock"), wait=True) or nullcontext():
            if not file.exists():
                drawn = io.BytesIO()
                np.savez(drawn, *trainer.state.weights()[0])
                write_atomically(file, drawn.getvalue())
        # A pickle could run code.
        with np.load(file, allow_pickle=False) as stored:
            trainer.state.begin_with([stored[name] for name in stored.files])
    trainer.state.share()
