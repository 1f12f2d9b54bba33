"""Speed-ups of one epoch, of whole times, and of one run."""

import made

from scalestudy.analysis.compliance.look import look
from scalestudy.analysis.findings import analyse


def log(times: list[float]) -> str:
    rows = [f"{epoch},{time},{1 / (epoch + 1)}" for epoch, time in enumerate(times)]
    return "\n".join(["epoch,time_per_epoch,loss", *rows])


def test_a_speed_up_of_the_second_epoch_alone_is_doubtful(looked):
    found = looked({"log_1.csv": log([50, 40]), "log_4.csv": log([20, 10])})["Speed-up from a single epoch"]
    assert found.severity == "doubtful"
    assert found.where == "log_4.csv, lines 2-3"


def test_a_slow_first_epoch_in_whole_times_is_named_with_what_it_moves(looked):
    found = looked({"log_1.csv": log([60, 40, 40, 40]), "log_4.csv": log([50, 10, 10, 10])})
    warm = found["Warm-up counted in"]
    assert (warm.claimed, warm.corrected) == ("speed-up 2.25 of whole times", "4.00 of steady epochs")
    assert "5.0 times as long" in warm.sentence
    assert "Speed-up from a single epoch" not in found
    steady = looked({"log_1.csv": log([40, 40, 40]), "log_4.csv": log([10, 10, 10])})
    assert "Warm-up counted in" not in steady


def test_one_epoch_is_doubtful(looked):
    assert looked("gpus,seconds,epochs\n1,10,1\n2,6,1\n")["One epoch"].severity == "doubtful"
    assert "One epoch" not in looked("gpus,seconds,epochs\n1,10,3\n2,6,3\n")


def test_single_runs_are_noted_of_ours_too(looked):
    found = looked("gpus,seed,seconds\n1,0,10\n1,1,11\n2,0,6\n")["One run"]
    assert found.sentence.startswith("1 of 2 rows is of a single run")
    ours = {each.title: each for each in look(analyse("ours", made.seeded((1, 2), ("horovod",), seeds=1)))}
    assert ours["One run"].where == "horovod-w1-s0; horovod-w2-s0"
    assert "One run" not in {each.title for each in look(analyse("ours", made.seeded((1, 2), seeds=2)))}


def test_times_added_up_over_workers_are_named(looked):
    times = "\n".join(f"{k},10,160,1" for k in range(4))
    text = "epoch,time_per_epoch,training_time,loss\n" + times
    found = looked({"log_4.csv": text})["Time added up over workers"]
    assert (found.claimed, found.corrected) == ("160 s", "40 s")
