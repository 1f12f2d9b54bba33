import os
import threading
from pathlib import Path

import numpy as np
import pytest

from scalestudy.data.store.files import Shards, ShardWriter

ROWS = [b"a" * 5, b"", b"b" * 4, b"c" * 30, b"d", b"e" * 10]


def opened_in(folder):
    files = [Path(os.path.realpath(each.path)) for each in os.scandir("/proc/self/fd")]
    return sorted(file.name for file in files if file.suffix == ".bin" and file.parent == folder.resolve())


def written(folder, rows=ROWS, most=10):
    writer = ShardWriter(folder, "inputs", most)
    for row in rows:
        writer.write(row)
    return writer.finish()


def test_rows_are_found_in_any_order_wherever_they_lie(tmp_path):
    files = written(tmp_path)
    assert sorted(files) == [f"inputs-0000{i}.bin" for i in range(4)] + ["inputs-index.npy"]
    shards = Shards(tmp_path, "inputs")
    assert len(shards) == 6
    assert [shards.row(i) for i in (5, 0, 3, 1, 4, 2)] == [ROWS[i] for i in (5, 0, 3, 1, 4, 2)]


@pytest.mark.parametrize("row", [-1, 6])
def test_a_row_that_is_not_there_is_an_error(tmp_path, row):
    written(tmp_path)
    with pytest.raises(IndexError, match=f"row {row} of 6"):
        Shards(tmp_path, "inputs").row(row)


def test_a_file_that_ends_too_early_or_has_gone_is_an_error(tmp_path):
    written(tmp_path)
    shards = Shards(tmp_path, "inputs")
    os.truncate(tmp_path / "inputs-00001.bin", 29)
    with pytest.raises(OSError, match=r"inputs-00001.bin ends within row 3"):
        shards.row(3)
    (tmp_path / "inputs-00003.bin").unlink()
    with pytest.raises(FileNotFoundError):
        shards.row(5)


def test_threads_read_beside_each_other(tmp_path):
    rows = [bytes([i]) * (i + 1) for i in range(200)]
    written(tmp_path, rows, 300)
    shards, wrong = Shards(tmp_path, "inputs"), []

    def read(seed):
        order = np.random.default_rng(seed).permutation(200).tolist()
        wrong.extend(row for row in order if shards.row(row) != rows[row])

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
