"""A gallery that a run leaves when it ends: a few of its validation samples, for the report."""

import traceback

import numpy as np

from scalestudy.data.loading.order import Indices
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import Trainer
from scalestudy.study.run_folder import RunFolder
from scalestudy.training.gallery_samples import gallery_of
from scalestudy.util.files import write_atomically

SAMPLES = 48
"""Most validation samples that are looked at: rank 0 does so alone, while the others have left."""
PIXELS = 2**22
"""Most pixels of these together."""
BYTES = 2_000_000
"""Most bytes that the file may have; the last of its samples are left out."""


def leave(folder: RunFolder, trainer: Trainer, prepared: Prepared, rows: Indices) -> None:
    """Write `gallery.json` of some of `rows` (the validation set, shape [M]), spread evenly over it.

    Whatever fails here is told in the log, and keeps no run from being done.
    """
    record = folder.model_record()
    if record is None or not record.train.get("gallery", True) or prepared.kind not in ("masks", "classes"):
        return
    try:
        made = gallery_of(
            trainer.inference(), record, prepared, some(rows, int(np.prod(prepared.input_shape[:2]))),
            count=1, better=trainer.sense.better, of=len(rows),
        )  # fmt: skip
        text = made.model_dump_json()
        while len(text) > BYTES and made.samples:
            made = made.model_copy(update={"samples": made.samples[:-1]})
            text = made.model_dump_json()
        folder.refuse_other_job()
        write_atomically(folder.gallery, text + "\n")
    except Exception as error:  # of the user's model, or of a disk: the run is done all the same
        traceback.print_exc()
        print(f"scalestudy: no gallery of this run: {error}", flush=True)


def some(rows: Indices, pixels: int) -> Indices:
    """As many of `rows` as are looked at, evenly spread; images have so many pixels."""
    most = min(len(rows), SAMPLES, max(6, PIXELS // pixels))
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]
