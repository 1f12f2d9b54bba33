"""Efficiency from samples that were never processed."""

TITLE = "Efficiency from samples never processed"
HEADER = "strategy,gpus,images/s,global_batch,updates,epochs,samples,epoch_seconds,efficiency\n"


def test_the_published_91_percent_on_mnist_are_76(looked):
    """Images/s as printed, 464 and 24 updates of 8 epochs: 3 x 16,384 of 60,000 images."""
    text = HEADER + "horovod,1,66176,1024,464,8,60000,,\nhorovod,8,486914,16384,24,8,60000,,91 %\n"
    found = looked(text)[TITLE]
    assert (found.claimed, found.corrected) == ("efficiency 91%", "76%")
    assert found.severity == "doubtful"  # no time says what the rate divides
    assert "10,848 that were never processed" in found.sentence
    assert "speed-up is 6.09" in found.sentence
    assert found.where == "t.csv, line 2; t.csv, line 3"


def test_without_one_worker_speed_up_and_efficiency_are_against_the_same_row(looked):
    text = HEADER + "h,2,130000,2048,232,8,60000,,\nh,8,486914,16384,24,8,60000,,\n"
    found = looked(text)[TITLE]
    # 3.75 by the whole set; 49,152 images against 59,392.
    assert "speed-up is 3.10" in found.sentence
    assert (found.claimed, found.corrected) == ("efficiency 94%", "77%")


def test_a_time_that_shows_what_the_rate_divides_makes_it_sure(looked):
    text = (
        HEADER
        + f"h,1,66176,1024,464,8,60000,{60000 / 66176},\nh,8,486914,16384,24,8,60000,{60000 / 486914},\n"
    )
    found = looked(text)[TITLE]
    assert (found.severity, found.claimed, found.corrected) == ("wrong", "efficiency 92%", "76%")


def test_a_rate_of_samples_really_processed_is_left_alone(looked):
    text = (
        HEADER
        + f"h,1,66176,1024,464,8,60000,{59392 / 66176},\nh,8,400000,16384,24,8,60000,{49152 / 400000},\n"
    )
    assert TITLE not in looked(text)


def test_without_steps_it_is_said_under_the_condition_that_the_remainder_is_dropped(looked):
    text = HEADER + "h,1,66176,1024,,,60000,,\nh,8,486914,16384,,,60000,,\n"
    found = looked(text)[TITLE]
    assert found.severity == "doubtful"
    assert "where the remainder of an epoch is dropped" in found.sentence
    assert TITLE not in looked(HEADER + "h,1,66176,1000,,,60000,,\nh,8,486914,10000,,,60000,,\n")
