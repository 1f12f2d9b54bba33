"""What the name of a file and its folders says of a run."""

from pathlib import Path

import pytest

from scalestudy.features.imported.run_name import RunName, parse_name, run_name


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (("log_8",), RunName(8)),
        (("log_hvd_8",), RunName(8, "horovod")),
        (("ddp-w4-s1",), RunName(4, "ddp", 1)),
        (("mirrored_2gpus_seed3",), RunName(2, "mirrored", 3)),
        (("16gpus", "log"), RunName(16)),
        (("run-4gpus",), RunName(4)),
        (("np_8", "horovod"), RunName(8, "horovod")),
        (("results", "log"), RunName()),
        (("log_8_2",), RunName()),
        (("log_2024",), RunName()),
        (("log_2024_8",), RunName(8)),
        (("seed7",), RunName(None, None, 7)),
        (("gpus0",), RunName()),
        (("logs", "MirroredStrategy_4"), RunName(4, "mirrored")),
        (("logs", "MultiWorkerMirroredStrategy-w2"), RunName(2, "multiworker")),
        (("default", "log_ps_8"), RunName(8)),
    ],
)
def test_count_strategy_and_seed_are_in_a_name_or_not_known(
    parts: tuple[str, ...], found: RunName
):
    assert parse_name(parts) == found


def test_a_bare_number_is_a_number_of_workers_only_of_logs(tmp_path: Path):
    assert run_name(tmp_path / "table_3.csv", bare=False) == RunName()
    assert run_name(tmp_path / "w4" / "table_3.csv", bare=False) == RunName(4)
