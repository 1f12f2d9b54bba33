"""The time that the runs of a study took, including failed ones, from their folders."""

import time

import synthetic
from scalestudy.features.proposal.attempts import Work, seconds_of, work_of
from scalestudy.launch.status import study_status
from scalestudy.study.engines import DEFAULT, engine_traits
from scalestudy.study.records import Cause, Failure
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import StudyFolder

START = 1_700_000_000.0


def work(folder: StudyFolder) -> Work:
    return work_of(folder, study_status(folder))


def failed(folder: StudyFolder, workers: int, seconds: float | None) -> RunFolder:
    """A run with `workers` workers that failed after `seconds`; None if nothing records the time."""
    point = next(point for point in folder.points() if point.workers == workers)
    run = folder.new_run(point)
    run.write_failure(Failure(rank=0, exit_code=1, reason="it failed"))
    if seconds is not None:
        run.write_rank(synthetic.rank(workers).model_copy(update={"began": START}))
        run.write_cause(Cause(rank=0, time=START + seconds, kind="exception"))
    return run


def test_what_ended_without_a_result_is_lost_beside_what_is_finished(tmp_path):
    runs = synthetic.seeded((1, 2), ("horovod",), seeds=1)
    folder = synthetic.write(tmp_path / "study", "study", runs)
    assert work(folder).share == 0.0
    failed(folder, 2, 1800.0)
    found = work(folder)
    assert found.attempts == 1
    assert abs(found.lost - 2 * 0.5) < 1e-9
    assert abs(found.useful - sum(r.result.workers * r.result.wall_seconds / 3600 for r in runs)) < 1e-9
    assert found.share == found.lost / found.useful


def test_a_failed_run_whose_time_nobody_knows_is_counted_and_gives_no_share(tmp_path):
    folder = synthetic.write(tmp_path / "study", "study", synthetic.seeded((1, 2), ("horovod",), seeds=1))
    failed(folder, 1, None)
    found = work(folder)
    assert (found.attempts, found.unknown, found.lost, found.share) == (1, 1, 0.0, None)


def test_a_run_that_has_failed_for_good_is_lost_too(tmp_path):
    folder = synthetic.write(
        tmp_path / "study", "study", [synthetic.run("native")], synthetic.unfinished()[:1]
    )
    assert work(folder).attempts == 1


def test_a_rank_records_when_its_process_began():
    from scalestudy.cluster.placement import Placement
    from scalestudy.measure.environment import rank_record

    placement = Placement(0, 1, 0, 1, 0, ("localhost",), "test")
    began = rank_record(placement, engine_traits(DEFAULT), threads=1, devices=[], build={}).began
    assert began is not None
    assert began < time.time()


def test_a_clock_that_went_back_makes_no_negative_time(tmp_path):
    folder = synthetic.write(tmp_path / "study", "study", [synthetic.run("native")])
    assert seconds_of(failed(folder, 1, -5.0)) is None
