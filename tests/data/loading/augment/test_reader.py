import numpy as np
import pytest

from scalestudy.data.loading.augment.reader import FIRST, SECOND, SHARE, Augmented
from scalestudy.data.loading.loader import Loader
from scalestudy.data.loading.order import epoch_order
from scalestudy.data.loading.reader import Stored
from scalestudy.study.augmentation import parsed
from scalestudy.util.errors import UserError

COUNT = 24
IMAGES = np.random.default_rng(0).integers(0, 255, (COUNT, 12, 12, 2), np.uint8)
LABELS = np.arange(COUNT, dtype=np.int32)
MASKS = np.random.default_rng(1).integers(0, 3, (COUNT, 12, 12)).astype(np.uint8)
ALL = "flip, rotate, elastic(2), brightness, noise"


def reader(text, targets=LABELS, seed=0):
    return Augmented(
        Stored(IMAGES, targets), parsed(text),
        seed=seed, scale=1 / 255, candidates=np.arange(20),
    )  # fmt: skip


def epoch(text, workers, batch=5, number=0, **more):
    """Return the samples of an epoch in order, read by `workers` workers."""
    source, order = reader(text, **more), epoch_order(np.arange(20), 0, number)
    calls = [
        list(Loader(source, slices=[(rank, rank + 1)], workers=workers, global_batch=batch).epoch(
            order, epoch=number)) for rank in range(workers)
    ]  # fmt: skip
    parts = [part for step in zip(*calls, strict=True) for (part,) in step if part.count]
    return parts


def flat(parts, of):
    return np.concatenate([of(part)[0, : part.count] for part in parts])


@pytest.mark.parametrize("targets", [LABELS, MASKS], ids=["classes", "masks"])
@pytest.mark.parametrize("text", [ALL, f"mixup, {ALL}", f"cutmix, {ALL}"])
def test_samples_are_changed_alike_however_many_workers_read_them(text, targets):
    alone, five = (epoch(text, workers, targets=targets) for workers in (1, 5))
    assert np.array_equal(flat(alone, lambda p: p.inputs), flat(five, lambda p: p.inputs))
    if isinstance(alone[0].targets, dict):
        for name in (FIRST, SECOND, SHARE):
            of = [flat(parts, lambda p: p.targets[name]) for parts in (alone, five)]  # noqa: B023
            assert np.array_equal(*of)
    else:
        assert np.array_equal(flat(alone, lambda p: p.targets), flat(five, lambda p: p.targets))


def test_an_epoch_that_is_taken_up_in_its_middle_reads_the_same():
    source, order = reader(f"mixup, {ALL}"), epoch_order(np.arange(20), 0, 3)

    def batches(first):
        loader = Loader(source, slices=[(0, 1)], workers=1, global_batch=5)
        return [call[0].inputs.copy() for call in loader.epoch(order, first, epoch=3)]

    assert all(np.array_equal(a, b) for a, b in zip(batches(0)[2:], batches(2), strict=True))


def test_each_epoch_and_each_seed_changes_anew():
    first, second, other = epoch(ALL, 1), epoch(ALL, 1, number=1), epoch(ALL, 1, seed=1)
    pictures = [
        flat(parts, lambda p: p.inputs)[np.argsort(flat(parts, lambda p: p.targets))]
        for parts in (first, second, other)
    ]
    assert not np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


def test_without_an_epoch_samples_stay_as_they_are():
    source = reader(f"mixup, {ALL}")
    loader = Loader(source, slices=[(0, 1)], workers=1, global_batch=4)
    part = loader.read(np.arange(4), [(0, 4)])[0]
    assert np.array_equal(part.inputs[0], IMAGES[:4])
    assert (part.targets[FIRST][0].tolist(), part.targets[SHARE][0].tolist()) == ([0, 1, 2, 3], [1] * 4)


def test_others_come_from_the_training_set_alone():
    parts = epoch("mixup(5)", 1)
    assert set(flat(parts, lambda p: p.targets[SECOND])) <= set(range(20))


@pytest.mark.parametrize("inputs", [np.zeros((4, 3)), {"a": np.zeros((4, 3, 3, 1))}], ids=["table", "named"])
def test_what_is_no_image_is_refused(inputs):
    with pytest.raises(UserError, match=r"images, each with a mask or a class, for train\.augment"):
        Augmented(Stored(inputs, np.zeros(4)), parsed("flip"), seed=0, scale=1.0, candidates=np.arange(4))
