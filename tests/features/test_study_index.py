"""The index of several studies."""

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.features.study_index import index_document, lines_of
from scalestudy.report.write_document import html, markdown
from scalestudy.store.study_folder import StudyFolder, studies_in
from synthetic_result import result_of

TEXT = 'task = "cnn"\ndescription = "Which {} is best?"\n[sweep]\nworkers = [1, 2]\nseed = 0\n'


@pytest.fixture
def studies(write_study):
    """A folder of two studies, only the second of which has a finished run and a page."""
    for name in ("first", "second"):
        text = TEXT.format(name)
        file = write_study(text)
        study = load_study(file)
        points = expand(study, gpus=0, cores=8)
        folder = StudyFolder.create_or_open(
            file.parent / "studies" / name, study, points, text
        )
    folder.new_run(points[0]).write_result(result_of(points[0]))
    (folder.path / "report").mkdir()
    (folder.path / "report" / "report.html").touch()
    return folder.path.parent


def test_studies_are_found_below_a_folder_but_not_below_a_study(studies):
    assert [path.name for path in studies_in(studies)] == ["first", "second"]
    assert studies_in(studies.parent) == studies_in(studies)
    assert studies_in(studies / "first") == []
    assert studies_in(studies / "nowhere") == []


def test_each_study_has_its_question_choice_and_state_the_newest_first(studies):
    newest, other = lines_of(studies_in(studies), studies)
    assert list(map(str, newest[:2])) == ["second", "Which second is best?"]
    assert newest[3] == "1 of 2" and newest[4]
    assert list(other)[3:] == ["0 of 2", ""]
    page = html(index_document("studies", (newest, other)))
    assert 'href="second/report/report.html"' in page and 'href="first' not in page


def test_a_study_that_cannot_be_read_says_so_and_hides_no_other(studies):
    (studies / "first" / "study.json").write_text("{")
    text = markdown(index_document("studies", lines_of(studies_in(studies), studies)))
    assert "It cannot be read" in text and "Which second is best?" in text
