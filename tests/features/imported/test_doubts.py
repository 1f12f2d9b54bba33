"""Numbers that can be understood in two ways are refused, with both ways."""

import pytest

from scalestudy.util.errors import UserError


def test_throughput_per_gpu_is_recognised_by_its_name(read):
    imported = read({"t.csv": "gpus,img/s/GPU\n1,100\n2,98\n8,91\n"})
    assert [run.result.throughput for run in imported.runs] == [100, 196, 728]
    assert "Throughput is img/s/GPU times the workers." in imported.readings[0]


def test_tokens_are_said_since_columns_call_them_samples(read):
    (line, *_) = read({"t.csv": "gpus,tokens/s\n1,100\n2,195\n"}).readings
    assert "tokens per second" in line
    (line, *_) = read({"u.csv": "gpus,img/s\n1,100\n2,195\n"}).readings
    assert "tokens per second" not in line


@pytest.mark.parametrize(
    "text", ["gpus,img/s\n1,100\n2,98\n8,91\n", "gpus,img/s/GPU\n1,100\n2,195\n8,700\n"]
)
def test_throughput_whose_values_speak_against_its_name_is_refused_until_the_user_says(
    read, text: str
):
    name = text.split("\n", maxsplit=1)[0].split(",")[1]
    with pytest.raises(
        UserError,
        match=f'throughput_per_worker={name}", or --column "throughput={name}"',
    ):
        read({"t.csv": text})
    each = read({"t.csv": text}, columns={"throughput_per_worker": name})
    total = read({"t.csv": text}, columns={"throughput": name})
    stated = [run.result.throughput for run in total.runs]
    assert [run.result.throughput for run in each.runs] == [
        stated[0],
        2 * stated[1],
        8 * stated[2],
    ]


def test_one_series_that_does_not_scale_beside_one_that_does_is_no_doubt(read):
    imported = read(
        {"t.csv": "strategy,gpus,img/s\na,1,100\na,8,95\nb,1,100\nb,8,700\n"}
    )
    assert len(imported.runs) == 4


def test_throughput_in_logs_is_doubted_over_all_of_them(read):
    log = "epoch,loss,img/s\n0,1,50\n1,.9,100\n2,.8,100\n"
    with pytest.raises(UserError, match="throughput_per_worker=img/s"):
        read({"log_1.csv": log, "log_8.csv": log})


@pytest.mark.parametrize(
    ("files", "pair"),
    [
        (
            {"t.csv": "gpus,time,accuracy\n1,9,.9\n2,5,90.1\n"},
            r"0\.9 \(t\.csv, line 2\) and 90\.1",
        ),
        (
            {"a.csv": "gpus,accuracy\n1,.9\n", "b.csv": "gpus,accuracy\n2,90.1\n"},
            r"\(a\.csv, line 2\)",
        ),
    ],
)
def test_shares_and_percentages_in_one_metric_are_refused(
    read, files: dict[str, str], pair: str
):
    with pytest.raises(UserError, match=pair):
        read(files)


def test_percentages_on_both_sides_of_one_are_no_mixed_units(read):
    assert len(read({"t.csv": "gpus,time,error_rate\n1,9,0.8\n2,5,1.2\n"}).runs) == 2
    assert (
        len(read({"t.csv": "gpus,time,Accuracy (%)\n1,9,76.2%\n2,5,0.1 %\n"}).runs) == 2
    )
