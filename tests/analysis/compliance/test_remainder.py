"""Samples that are never trained on."""

import made

from scalestudy.analysis.compliance.remainder import remainder
from scalestudy.analysis.findings import analyse

HEADER = "gpus,seconds,global_batch,steps_per_epoch,epochs,samples\n"


def test_steps_that_leave_samples_out_are_named_with_their_share(looked):
    found = looked(HEADER + "1,99,16,56,200,896\n8,14,128,6,200,896\n")["Remainder dropped"]
    assert found.severity == "wrong"
    assert (found.claimed, found.corrected) == ("896 samples an epoch", "768")
    assert "128 (14.3 %)" in found.sentence
    assert found.where == "t.csv, line 3"


def test_steps_that_take_in_all_samples_are_left_alone(looked):
    assert "Remainder dropped" not in looked(HEADER + "1,99,16,56,200,896\n8,14,128,7,200,896\n")


def test_runs_of_ours_process_all():
    assert remainder(analyse("ours", made.seeded((1, 2)))) == []
