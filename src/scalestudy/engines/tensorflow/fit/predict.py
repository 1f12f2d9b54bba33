"""Keras's `predict`, each process computing its rows."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.data.loading.order import worker_slice
from scalestudy.engines.group import Group
from scalestudy.engines.keras.private import array_rows, batch_of, epoch_iterator
from scalestudy.engines.tensorflow.fit.rows import form_of


def predicted(group: Group, model: keras.Model, x: Any, arguments: dict[str, Any]) -> Any:
    """The outputs for all samples of `x`, in their order, on every rank.

    Arrays are divided once, each process predicting a block of rows; of a stream every process reads all and
    predicts its rows of each batch.

    Raises:
        RunError: On every rank, where streams have given the ranks other numbers of samples.
    """
    steps = arguments.pop("steps", None)
    adapter = epoch_iterator(x=x, batch_size=arguments.get("batch_size"), steps_per_epoch=steps).data_adapter
    rows = array_rows(adapter)
    if rows is None:
        places, outputs = _of_stream(group, model, adapter.get_tf_dataset(), steps)
    else:
        count, batch = batch_of(adapter)
        start, stop = worker_slice(count, group.rank, group.size)
        places = np.arange(start, stop)
        asked = slice(start, max(stop, start + 1)) if start < count else slice(0, 1)
        own = keras.tree.map_structure(lambda each: each.convert_to_numpy(each[asked]), _inputs(rows))
        outputs = model.predict(own, **(arguments | {"batch_size": batch}))
    return _gathered(group, places, outputs)


def _inputs(batch: Any) -> Any:
    return keras.utils.unpack_x_y_sample_weight(batch)[0]


def _of_stream(
    group: Group, model: keras.Model, dataset: Any, steps: int | None
) -> tuple[NDArray[np.int64], Any]:
    """Places of this rank's rows among all, and the outputs for them, or for one row where it has none."""
    form_of(dataset.element_spec)
    places: list[Any] = []
    outputs: list[tuple[int, Any]] = []
    seen = 0
    for batch in dataset.take(-1 if steps is None else steps):
        inputs = _inputs(batch)
        total = int(keras.tree.flatten(inputs)[0].shape[0])
        start, stop = worker_slice(total, group.rank, group.size)
        if stop > start or not outputs:
            asked = slice(start, stop) if stop > start else slice(0, 1)
            own = keras.tree.map_structure(lambda each, asked=asked: each[asked], inputs)
            outputs.append((stop - start, model.predict_on_batch(own)))
        places.append(np.arange(seen + start, seen + stop))
        seen += total
    kept = [(count, found) for count, found in outputs if count] or outputs[:1]
    return np.concatenate(places), keras.tree.map_structure(
        lambda *each: np.concatenate(each), *(f for _, f in kept)
    )


def _gathered(group: Group, places: NDArray[np.int64], outputs: Any) -> Any:
    """All ranks' rows in the order of their places."""
    (counts,) = group.gather([np.array([len(places)], np.int64)])
    most = max(1, int(counts.max()))

    def filled(own: NDArray[Any]) -> NDArray[Any]:
        table = np.zeros((most, *own.shape[1:]), own.dtype)
        table[: len(places)] = own[: len(places)]
        return table

    leaves = keras.tree.flatten(outputs)
    gathered = group.gather([filled(places), *map(filled, leaves)])
    chosen = np.concatenate([np.arange(count) + rank * most for rank, count in enumerate(counts)])
    order = np.argsort(gathered[0][chosen])
    return keras.tree.pack_sequence_as(outputs, [each[chosen][order] for each in gathered[1:]])
