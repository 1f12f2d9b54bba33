"""Rows come in the order in which a reader looks for them."""

from scalestudy.analysis.runs import key_of, order


def test_sizes_sort_by_what_they_are_and_words_after_them():
    sizes = ("64 KiB", "128 KiB", "8 MiB", "1 GiB", "all")
    keys = [key_of("horovod", 2, {"launch.bucket_size": size}) for size in sizes]
    assert sorted(set(keys), key=order) == keys


def test_numbers_sort_as_numbers_within_a_variant_then_by_strategy_and_workers():
    keys = [
        key_of(strategy, workers, {"train.batch_size": batch})
        for batch in (8, 16, 128)
        for strategy in ("single", "horovod")
        for workers in (2, 10)
    ]
    assert sorted(set(keys), key=order) == keys
