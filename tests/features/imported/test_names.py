"""What names of files and folders tell."""

import pytest

from scalestudy.features.imported.names import Named, named


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (("log_8",), Named(8)),
        (("log_hvd_8",), Named(8, "horovod")),
        (("ddp-w4-s1",), Named(4, "ddp", 1)),
        (("mirrored_2gpus_seed3",), Named(2, "mirrored", 3)),
        (("16gpus", "log"), Named(16)),
        (("run-4gpus",), Named(4)),
        (("np_8", "horovod"), Named(8, "horovod")),
        (("results", "log"), Named()),
        (("log_8_2",), Named()),
        (("seed7",), Named(None, None, 7)),
        (("gpus0",), Named()),
    ],
)
def test_count_strategy_and_seed_are_in_a_name_or_not_known(parts: tuple[str, ...], found: Named):
    assert named(parts) == found
