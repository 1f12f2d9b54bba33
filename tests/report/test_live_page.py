"""The live page of synthetic studies, as a file and in a real browser."""

import time

import pytest

from chromium import COMMAND, Chromium, Tab
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.launch.study_status import study_status
from scalestudy.report.live_page import LivePage, curve
from scalestudy.store.records import EpochRecord
from scalestudy.store.study_folder import StudyFolder
from synthetic_result import progress_of, result_of

TEXT = 'task = "cnn"\ntitle = "A <b> study"\n[sweep]\nworkers = [1, 2]\nseed = 0\n'
in_a_browser = pytest.mark.skipif(
    COMMAND is None, reason="no Chromium (Debian: apt-get install chromium)"
)


@pytest.fixture
def folder(write_study) -> StudyFolder:
    """The folder of a study of two points, the first of which is in its third epoch of four."""
    study = write_study(TEXT)
    loaded = load_study(study)
    points = expand(loaded, gpus=0, cores=8)
    made = StudyFolder.create_or_open(
        study.parent / "studies" / "study", loaded, points, TEXT
    )
    run = made.new_run(points[0])
    progress = progress_of(epoch=3, epochs=4, updated=time.time())
    run.write_progress(progress)
    for number, loss in ((1, 0.5), (2, 0.25)):
        run.append_epoch(
            EpochRecord(
                epoch=number,
                steps=2,
                samples=8,
                train_seconds=1.0,
                elapsed_training_seconds=1.0 * number,
                loss=0.9,
                learning_rate=0.1,
                input_seconds=0.0,
                evaluation_seconds=0.0,
                validation={"loss": loss},
            )
        )
    return made


def end_run(folder: StudyFolder) -> None:
    (point, _) = folder.points()
    (run,) = folder.runs(point.name)
    run.write_result(result_of(point))


def test_the_page_shows_states_losses_on_the_validation_set_and_what_is_next(folder):
    page = LivePage(folder.path)
    page.next = "native on 2 workers, to time every row"
    page.update(study_status(folder))
    text = page.path.read_text()
    assert "A &lt;b&gt; study" in text and "1 running, 1 missing" in text
    assert "Next: native on 2 workers, to time every row" in text
    assert 'value="0.625"' in text and "3/4" in text
    assert ">0.25</td>" in text and "0.9" not in text


def test_it_is_written_once_in_the_interval_and_at_the_end(folder):
    page = LivePage(folder.path, every=3600)
    page.update(study_status(folder))
    before = page.path.read_text()
    end_run(folder)
    page.update(study_status(folder))
    assert page.path.read_text() == before and "data-live" in before
    page.end()
    after = page.path.read_text()
    assert "data-live" not in after and "1 done, 1 missing" in after
    assert "refresh" not in after  # an earlier report would be of another state


def test_a_folder_of_another_user_has_no_page(folder):
    (folder.path / "report").symlink_to(folder.path.parent)
    shown = []
    LivePage(folder.path, shown=shown.append).update(study_status(folder))
    assert shown == [] and not (folder.path.parent / "live.html").exists()


def test_a_curve_falls_with_the_losses_and_needs_two():
    assert curve([0.5]) == ""
    assert curve([2.0, 1.0]) == "2.0,2.0 98.0,22.0"
    assert curve([1.0, 1.0]) == "2.0,2.0 98.0,2.0"


@in_a_browser
@pytest.mark.browser
def test_a_browser_follows_the_study_by_itself_and_ends_on_its_report(folder, tmp_path):
    page = LivePage(folder.path, every=0.05)
    page.update(study_status(folder))
    browser = Chromium(tmp_path / "profile")
    try:
        tab = Tab(browser)
        tab.screen()
        tab.visit(page.path)
        tab.wait_over_loads("document.body.innerText.includes('1 running, 1 missing')")
        assert tab.requests == [] and tab.complaints == []
        tab.wait_over_loads("document.querySelectorAll('polyline').length === 1")
        end_run(folder)
        while "1 done" not in page.path.read_text():
            page.update(study_status(folder))
        tab.wait_over_loads("document.body.innerText.includes('1 done, 1 missing')")
        (page.path.parent / "report.html").write_text("<title>the report</title>")
        page.reported = True
        page.end()
        tab.wait_over_loads("document.title === 'the report'")
    finally:
        browser.close()
