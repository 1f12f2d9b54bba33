"""What is stated beside the numbers, batches and rates that do not follow the workers."""

import made

from scalestudy.analysis.compliance.look import look
from scalestudy.analysis.findings import analyse


def test_a_stated_speed_up_that_its_own_numbers_do_not_give_is_wrong(looked):
    found = looked("gpus,seconds,speedup\n1,100,1\n4,40,3.4\n")["The speed-up stated is another"]
    assert (found.claimed, found.corrected, found.where) == ("speed-up 3.40", "2.50", "t.csv, line 3")
    assert "The speed-up stated is another" not in looked("gpus,seconds,speedup\n1,100,1\n4,40,2.5\n")


def test_a_speed_up_stated_over_one_worker_is_right_where_that_worker_is_not_in_the_table(looked):
    title = "The speed-up stated is another"
    assert title not in looked("gpus,seconds,speedup\n2,52.6,1.9\n4,27.8,3.6\n8,14.7,6.8\n")
    assert title not in looked("gpus,seconds,speedup\n2,52.6,1\n4,27.8,1.89\n8,14.7,3.58\n")
    assert title not in looked("gpus,seconds,speedup\n2,52.6,\n4,27.8,3.6\n8,14.7,6.8\n")
    found = looked("gpus,seconds,speedup\n2,52.6,1.9\n4,27.8,3.6\n8,14.7,7.8\n")[title]
    assert (found.claimed, found.corrected) == ("speed-up 7.80", "6.80")
    told = "gpus,seconds,efficiency\n2,52.6,0.95\n4,27.8,0.9\n8,14.7,0.85\n"
    assert "The efficiency stated is another" not in looked(told)


def test_a_rate_that_stays_while_workers_grow_is_likely_that_of_one(looked):
    found = looked("gpus,images/s\n1,340\n8,310\n")["A rate that does not grow"]
    assert (found.claimed, found.corrected) == ("speed-up 0.91", "7.29")
    assert "A rate that does not grow" not in looked("gpus,images/s\n1,340\n8,1310\n")


def test_a_batch_that_grows_is_said_with_what_the_rate_does(looked):
    header = "gpus,seconds,global_batch,lr,updates,accuracy\n"
    same = looked(header + "1,100,32,.001,464,.985\n16,9,512,.001,29,.896\n")["Changed batch"]
    assert same.severity == "doubtful"
    assert same.corrected == "16 times the batch, 16 times fewer updates"
    assert "the learning rate stays at 0.001" in same.sentence
    assert "quality goes from 0.985 to 0.896" in same.sentence
    scaled = looked(header + "1,100,32,.001,464,.985\n16,9,512,.016,29,.896\n")["Changed batch"]
    assert scaled.severity == "note"
    unknown = looked("gpus,seconds,global_batch\n1,100,32\n16,9,512\n")["Changed batch"]
    assert "whether the learning rate was scaled is not known" in unknown.sentence
    assert "Changed batch" not in looked("gpus,seconds,global_batch\n1,100,512\n16,9,512\n")


def test_of_runs_of_ours_the_rate_is_known():
    found = {each.title: each for each in look(analyse("ours", made.seeded((1, 2, 4), ("horovod",))))}
    assert set(found) == {"Changed batch"}
    assert found["Changed batch"].severity == "note"
    assert "the learning rate goes from 0.001 to 0.004" in found["Changed batch"].sentence


def test_synthetic_data_are_noted(looked):
    text = "Dataset:     imagenet (synthetic)\nDevices:     ['/gpu:0']\ntotal images/sec: 341.5\n"
    assert looked({"out.txt": text})["Synthetic data"].where == "out.txt, line 3"


def test_the_gravest_come_first(looked):
    text = "gpus,seconds,speedup,global_batch\n1,100,1,32\n4,40,3.4,128\n"
    severities = [each.severity for each in reversed(looked(text).values())]
    assert severities == ["wrong", "doubtful", "note"]
