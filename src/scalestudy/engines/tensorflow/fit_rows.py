"""A worker's rows of each batch that Keras passes to `fit` or `evaluate`."""

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.data.loader import Prefetch
from scalestudy.data.samples import Call, Slice, worker_slice
from scalestudy.engines.group import Group
from scalestudy.engines.keras.private import array_rows, batch_of, rows_in_order
from scalestudy.engines.tensorflow.replicas import CompiledReplicas
from scalestudy.engines.tensorflow.staging import gpu, tensor
from scalestudy.util.errors import RunError, UserError

AHEAD = 2
SAMPLED = 4096
"""Values per array of a batch in the checksum that shows whether all workers read the same batch."""


class BatchForm(NamedTuple):
    """The structure of a batch.

    Attributes:
        structure: Specs of x, (x, y) or (x, y, sample_weight), nested as the user passed them.
        flat: The specs that are not None, in the order of Keras's trees, for any number of rows.
    """

    structure: Any
    flat: list[Any]

    def packed(self, leaves: Sequence[Any]) -> Any:
        """Pack values for `flat` into the structure of the batch."""
        given = iter(leaves)
        flat = [None if spec is None else next(given) for spec in keras.tree.flatten(self.structure)]
        return keras.tree.pack_sequence_as(self.structure, flat)


def form_of(structure: Any) -> BatchForm:
    """Return the form of batches with these specs; raise UserError if one is not a dense batch."""

    def any_rows(spec: Any) -> Any:
        if spec is None:
            return None
        if not isinstance(spec, tf.TensorSpec):
            raise UserError(
                "dense tensors or arrays, for several workers",
                f"{type(spec).__name__} in a batch",
                "Convert them (`.to_tensor()`, `tf.sparse.to_dense`), or train on one worker.",
            )
        if not spec.shape.rank:
            raise UserError("batches whose first axis is that of the samples", f"{spec}", "Batch the data.")
        return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)

    structure = keras.tree.map_structure(any_rows, structure)
    return BatchForm(structure, [spec for spec in keras.tree.flatten(structure) if spec is not None])


class FitBatch(NamedTuple):
    """The batch that Keras passes on: one step, and the form of its batch."""

    form: BatchForm
    call: Call


class WorkerRows:
    """A replacement for a data adapter of Keras, with this process's rows instead of whole batches.

    Arrays are sliced before they are converted, so no worker reads another's rows. A stream (a dataset, a
    generator, a `PyDataset`) is read completely by every worker, because it cannot be split otherwise. One
    step consists of `together` of its batches: 1, or one for each worker.
    """

    def __init__(self, adapter: Any, replicas: CompiledReplicas, *, together: int = 1) -> None:
        self._adapter, self._replicas, self._together = adapter, replicas, together
        self._group = replicas.group
        self._rows = array_rows(adapter)
        if self._rows is None:
            self._dataset = adapter.get_tf_dataset()
            self.form = form_of(self._dataset.element_spec)
        else:
            self._order = rows_in_order(adapter) if self._group.rank == 0 else None
            self.form = form_of(keras.tree.map_structure(_first_row, self._rows))
            self._leaves = [leaf for leaf in keras.tree.flatten(self._rows) if leaf is not None]

    @property
    def num_batches(self) -> int | None:
        """Number of steps of an epoch, if known."""
        batches = self._adapter.num_batches
        return batches if batches is None or self._rows is not None else -(-int(batches) // self._together)

    def on_epoch_begin(self) -> None:
        self._adapter.on_epoch_begin()

    def on_epoch_end(self) -> None:
        self._adapter.on_epoch_end()

    def get_numpy_iterator(self) -> Iterator[FitBatch]:
        """Return an iterator over the steps of an epoch; create a dataset's iterator immediately.

        Each new iterator shuffles again, and Keras creates one more than it uses for each epoch of known
        length. Creating as many keeps Keras's order.
        """
        calls = self._shuffled() if self._rows is not None else self._of_stream(iter(self._dataset))
        return (FitBatch(self.form, call) for call in calls)

    def _shuffled(self) -> Iterator[Call]:
        """Yield steps of arrays, in an order drawn when the first step is requested."""
        rows, _ = batch_of(self._adapter)
        order = np.zeros(rows, np.int64)  # replaced by the order that Keras draws on rank 0
        if self._order is not None:
            order = np.concatenate([keras.tree.flatten(batch)[0].numpy() for batch in self._order])
        reader = Prefetch(self._of_arrays(self._group.share(order)), AHEAD, "rows")
        with contextlib.closing(reader), contextlib.suppress(StopIteration):
            while True:
                call = reader.take()
                yield call

    def _of_arrays(self, order: NDArray[np.int64]) -> Iterator[Call]:
        rows, batch = batch_of(self._adapter)
        for begin in range(0, rows, batch):
            total = min(batch, rows - begin)
            start, stop = self._bounds(total)
            chosen = order[begin + start : begin + stop]
            yield (_slice([_taken(leaf, chosen) for leaf in self._leaves], start, total),)

    def _of_stream(self, stream: Iterator[Any]) -> Iterator[Call]:
        known = self._adapter.num_batches is not None
        while True:
            batches = [batch for _ in range(self._together) if (batch := next(stream, None)) is not None]
            flat = [[leaf for leaf in keras.tree.flatten(batch) if leaf is not None] for batch in batches]
            sizes = [int(leaves[0].shape[0]) for leaves in flat]
            if not known or flat:
                _refuse_unequal(self._group, [*sizes, _digest(flat)])
            if not flat:
                return
            total, (first, last) = sum(sizes), self._replicas.slices[0]
            if self._together == 1:
                start, stop = self._bounds(total)
                yield (_slice([leaf[start:stop] for leaf in flat[0]], start, total),)
            else:  # a batch for each worker
                mine = flat[first:last] or [[leaf[:0] for leaf in flat[0]]]
                leaves = [tf.concat(parts, 0) for parts in zip(*mine, strict=True)]
                yield (_slice(leaves, sum(sizes[:first]), total),)

    def _bounds(self, total: int) -> tuple[int, int]:
        (first, last), workers = self._replicas.slices[0], self._replicas.workers
        return worker_slice(total, first, workers)[0], worker_slice(total, last - 1, workers)[1]


def _slice(leaves: Sequence[Any], start: int, total: int) -> Slice:
    """Return a slice of one step whose inputs are all arrays of the batch, keyed by their index."""
    count = int(leaves[0].shape[0])
    if not count:  # one row of zeros with weight 0
        types = [leaf.dtype.as_numpy_dtype if tf.is_tensor(leaf) else leaf.dtype for leaf in leaves]
        leaves = [np.zeros((1, *leaf.shape[1:]), kind) for leaf, kind in zip(leaves, types, strict=True)]
    inputs = {str(index): _on_device(leaf) for index, leaf in enumerate(leaves)}
    return Slice(inputs, {}, start, count, total)


def _on_device(leaf: Any) -> Any:
    place = gpu(0)
    if not tf.is_tensor(leaf):
        text = leaf.dtype.kind in "OUS"
        return tf.convert_to_tensor(leaf) if text else tensor(np.ascontiguousarray(leaf), place)
    if place is None or leaf.dtype in (tf.int32, tf.string):
        return leaf
    with tf.device(place):
        return tf.identity(leaf)


def _first_row(rows: Any) -> Any:
    if rows is None:
        return None
    row = rows.convert_to_numpy(rows[slice(0, 1)])
    return tf.TensorSpec(row.shape, tf.as_dtype(row.dtype))


def _taken(rows: Any, chosen: NDArray[np.int64]) -> NDArray[Any]:
    """Return the chosen rows as a NumPy array; consecutive rows are sliced."""
    in_order = len(chosen) > 0 and bool(np.all(np.diff(chosen) == 1))
    asked = slice(int(chosen[0]), int(chosen[-1]) + 1) if in_order else chosen
    return np.asarray(rows.convert_to_numpy(rows[asked]))


def _digest(batches: list[list[Any]]) -> int:
    """Return a checksum over some values of every array, or 0 without arrays."""
    checksum = 0
    for leaf in (leaf for leaves in batches for leaf in leaves):
        flat = leaf.numpy().reshape(-1)
        some = flat[:: max(1, len(flat) // SAMPLED)]
        checksum = zlib.crc32(b"\0".join(some) if some.dtype.kind == "O" else some.tobytes(), checksum)
    return checksum


def _refuse_unequal(group: Group, mine: list[int]) -> None:
    """Check that all workers have read the same batches for a step. Every rank must call this.

    Raises:
        RunError: On every rank, naming a rank that differs.
    """
    if group.size == 1:
        return
    (rows,) = group.gather([np.array([[sum(mine[:-1]), mine[-1]]], np.int64)])
    other = np.flatnonzero((rows != rows[0]).any(axis=1))
    if other.size:
        rank = int(other[0])
        sizes = (
            f"{rows[rank, 0]} samples instead of {rows[0, 0]}"
            if rows[rank, 0] != rows[0, 0]
            else "other samples"
        )
        raise RunError(
            "every worker to read the same batches, from which it takes its rows",
            f"{sizes} on rank {rank} than on rank 0",
            "Seed what shuffles (`shuffle(..., seed=0)`), take no shard of the data in the script, and let "
            "`map` and `interleave` keep their order.",
        )
