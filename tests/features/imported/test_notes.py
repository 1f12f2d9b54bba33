"""What is known, and what is not claimed, of numbers that were measured elsewhere."""

from elsewhere import cassava, foreign
from made import seeded

from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.notes import foreign_notes


def test_notes_name_the_files_and_the_times_that_speed_up_is_the_ratio_of():
    first, basis, seeds = foreign_notes(analyse("elsewhere", cassava()))
    assert first.startswith("All runs were measured elsewhere, and taken from times.csv (table)")
    assert "whole training times" in basis
    assert "seeds of 4 of them" in seeds


def test_beside_ours_they_say_how_many_runs_are_meant_and_of_ours_alone_nothing():
    theirs = [foreign(n, training_seconds=9 / n, swept={"source": "published"}) for n in (1, 2)]
    assert "2 of 14 runs" in foreign_notes(analyse("both", [*seeded((1, 2)), *theirs]))[0]
    assert foreign_notes(analyse("ours", seeded((1, 2)))) == []
