"""What the report says about the rows beside the chosen one."""

import synthetic
from scalestudy.analysis.findings import analyse


def advice(seconds):
    """Three seeds for each number of workers, of so many seconds."""
    runs = []
    for n, time in seconds.items():
        for seed, factor in enumerate((0.998, 1.0, 1.002)):
            run = synthetic.run(
                "native",
                n,
                seed,
                training_seconds=factor * time,
                throughput=1e6 / factor / time,
            )
            runs.append(
                synthetic.changed(
                    run, wall_seconds=factor * time, phases={"steps": factor * time}
                )
            )
    return analyse("made", runs).advice


def test_the_next_larger_and_the_next_smaller_row_have_figures():
    found = advice({1: 3600, 2: 1900, 4: 1050, 8: 800, 16: 700})
    assert found.decision.choice.workers == 4
    text = " ".join(found.sentences)
    assert "Faster but not chosen: native on 8 workers (cost efficiency 0.56)" in text
    assert "native on 16 workers" not in text
    assert (
        "Next smaller: native on 2 workers" in text
        and "1.81 times as long" in text
        and "0.95" in text
    )


def test_at_the_edge_the_next_doubling_is_predicted_and_to_be_measured():
    found = advice({1: 3600, 2: 1850, 4: 975, 8: 537})
    assert found.decision.choice.workers == 8
    (sentence,) = [
        text for text in found.sentences if "largest number measured" in text
    ]
    assert "For 16" in sentence and "predicted" in sentence


def test_the_margin_stands_beside_the_quality():
    found = advice({1: 3600, 2: 1900, 4: 1050})
    assert any("margin of 0.02" in text for text in found.sentences)
