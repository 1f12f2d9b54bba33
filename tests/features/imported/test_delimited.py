"""Tables as text: what they say, how they were understood, and what in them was not."""

import pytest

from scalestudy.errors import UserError


def test_columns_are_found_by_name_and_units_said_back(read):
    found = read({"t.csv": "GPUs,Time [min],val_acc\n1,9.5,0.91\n4,3.0,0.90\n"})
    one, four = [run.result for run in found.runs]
    assert (one.workers, four.workers) == (1, 4)
    assert one.training_seconds == pytest.approx(570)
    assert (four.quality, four.metric) == (0.90, "accuracy")
    assert [str(run.source) for run in found.runs] == ["t.csv, line 2", "t.csv, line 3"]
    assert "seconds from Time [min] (in min)" in found.readings[0]


def test_a_time_without_a_unit_is_taken_for_seconds_and_said(read):
    text = "n,time\n1,9\n"
    assert "taken for seconds; --unit seconds=min" in read({"t.csv": text}).readings[0]
    assert read({"t.csv": text}, units={"seconds": "h"}).runs[0].result.training_seconds == 32400
    with pytest.raises(UserError, match="--unit seconds=min"):
        read({"t.csv": text}, units={"seconds": "parsecs"})


def test_encodings_marks_and_decimal_commas_are_read(read):
    text = "Beschleuniger;gpus;Zeit\n\u00e4;1;1.562,5\n\u00f6;2;332,25\n"
    for encoding in ("utf-8-sig", "cp1252", "utf-16"):
        found = read({"t.csv": text.encode(encoding)}, columns={"seconds": "Zeit"})
        assert [run.result.training_seconds for run in found.runs] == [1562.5, 332.25], encoding


def test_broken_lines_are_named_by_number_and_left_out(read):
    text = "# by hand\ngpus,seconds\n1,100\n2\nfour,9\n8,nan\n\n16,-3\n32,inf\n4,30\n"
    found = read({"t.csv": text})
    assert [run.result.workers for run in found.runs] == [1, 4]
    said = " ".join(found.readings)
    for words in ("line 4: 1 cells where the header has 2", "line 5: four is no number of workers", "line 6",
                  "line 8", "line 9"):  # fmt: skip
        assert words in said


def test_other_columns_that_tell_rows_apart_are_swept_and_no_others(read):
    rows = ["1,1,on,a,10,.51,r", "1,1,off,b,12,.52,r", "4,2,on,c,4,.53,r", "4,2,off,d,5,.54,r"]
    text = "\n".join(["gpus,nodes,xla,note,seconds,loss,model", *rows])
    found = read({"t.csv": text})
    assert [run.result.swept for run in found.runs] == [{"xla": "on"}, {"xla": "off"}] * 2
    assert "Other columns that tell rows apart: xla." in found.readings[0]
    assert "Not used: nodes, note, model" in found.readings[0]


def test_a_batch_that_grows_with_the_workers_is_that_of_all_and_one_that_does_not_is_asked_for(read):
    grows = read({"t.csv": "gpus,batch,seconds\n1,32,10\n2,64,6\n"})
    assert [run.result.global_batch for run in grows.runs] == [32, 64]
    assert [run.result.per_worker_batch for run in grows.runs] == [32, 32]
    level = read({"t.csv": "gpus,batch,seconds\n1,32,10\n2,32,6\n"})
    assert level.runs[0].result.global_batch is None
    assert "--column per_worker_batch=batch" in level.readings[0]
    said = read({"t.csv": "gpus,batch,seconds\n1,32,10\n2,32,6\n"}, columns={"per_worker_batch": "batch"})
    assert [run.result.global_batch for run in said.runs] == [32, 64]


def test_what_is_missing_or_ambiguous_is_refused_with_the_way_out(read):
    for text, way in (
        ("a,seconds\n1,2\n", "--column workers=NAME"),
        ("gpus,a\n1,2\n", "--column seconds=NAME"),
        ("gpus,seconds,iou,dice\n1,2,.5,.6\n", "--metric iou"),
        ("gpus,ranks,seconds\n1,2,3\n", "--column workers=gpus"),
        ("gpus,epoch,seconds\n1,1,3\n1,2,3\n", "file for each"),
    ):
        with pytest.raises(UserError, match=way):
            read({"t.csv": text})
    assert read({"t.csv": "gpus,seconds,iou,dice\n1,2,.5,.6\n"}, metric="dice").runs[0].result.quality == 0.6


def test_strategies_seeds_and_utilisation_are_taken(read):
    text = "strategy,gpus,seed,images/s,GPU util,speed-up,efficiency,lr\nddp,8,3,4000,71 %,7.1,89 %,0.008\n"
    run = read({"t.csv": text}).runs[0]
    assert (run.result.strategy, run.result.seed, run.result.throughput) == ("ddp", 3, 4000)
    assert run.result.gpus[0].percent == 71


def test_a_rate_of_one_worker_is_multiplied(read):
    assert read({"t.csv": "gpus,images/s/gpu\n8,100\n"}).runs[0].result.throughput == 800


def test_what_the_user_says_fills_what_the_file_does_not(read):
    run = read({"t.csv": "gpus,seconds\n2,9\n"}, strategy="ddp", epochs=15, samples=5656).runs[0]
    assert (run.result.strategy, run.result.epochs, run.result.training_samples) == ("ddp", 15, 5656)
    assert read({"t.csv": "strategy,seconds\nddp,9\n"}, workers=4).runs[0].result.workers == 4


def test_columns_may_stand_apart_by_spaces(read):
    found = read({"t.txt": "n    time_s   images/s\n1   10.0   100\n4  3.0   350\n"})
    assert [run.result.throughput for run in found.runs] == [100, 350]


def test_a_long_table_is_read(read):
    rows = "".join(f"{1 + k % 16},{k + 1}\n" for k in range(2_000))
    assert len(read({"t.csv": "gpus,seconds\n" + rows}).runs) == 2_000
