"""What names of files and folders tell."""

import pytest

from scalestudy.features.imported.table import LogName, parse_name


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (("log_8",), LogName(8)),
        (("log_hvd_8",), LogName(8, "horovod")),
        (("ddp-w4-s1",), LogName(4, "ddp", 1)),
        (("mirrored_2gpus_seed3",), LogName(2, "mirrored", 3)),
        (("16gpus", "log"), LogName(16)),
        (("run-4gpus",), LogName(4)),
        (("np_8", "horovod"), LogName(8, "horovod")),
        (("results", "log"), LogName()),
        (("log_8_2",), LogName()),
        (("seed7",), LogName(None, None, 7)),
        (("gpus0",), LogName()),
    ],
)
def test_count_strategy_and_seed_are_in_a_name_or_not_known(parts: tuple[str, ...], found: LogName):
    assert parse_name(parts) == found
