import json

import pytest

import synthetic
from scalestudy.report.formats import FORMATS, Medium
from scalestudy.report.write import render, write_report
from scalestudy.util.errors import UserError


@pytest.fixture
def folder(tmp_path):
    return synthetic.write(
        tmp_path / "study", "made", synthetic.seeded((1, 2), ("horovod",)), synthetic.unfinished()
    )


def test_a_report_is_a_page_two_tables_and_its_figures(folder, tmp_path):
    paths = write_report(folder)
    assert paths.page == tmp_path / "study" / "report" / "report.html"
    assert len(paths.figures) == 3 * 6
    found = {path.name for path in paths.page.parent.iterdir()}
    assert found == {path.name for path in (*paths.files.values(), *paths.figures)}
    assert {path.name for path in paths.files.values()} == {
        "report.html", "report.md", "report.tex", "table.csv", "table.json"
    }  # fmt: skip


def test_a_report_written_elsewhere_still_links_to_the_runs(folder, tmp_path):
    paths = write_report(folder, tmp_path / "elsewhere" / "deep")
    assert 'href="../../study/points/horovod-w1-s0/run-1/"' in paths.page.read_text()


def test_a_report_is_replaced_when_written_again(folder):
    out = folder.path / "report"
    out.mkdir()
    (out / "report.html").write_text("old")
    assert write_report(folder).page.read_text().startswith("<!DOCTYPE html>")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    runs = synthetic.seeded((1, 2, 4, 6, 8), ("horovod",), seeds=1)
    return synthetic.write(tmp_path_factory.mktemp("many") / "study", "made", runs)


@pytest.mark.parametrize("name", FORMATS.built_in())
def test_every_format_renders_to_text_or_bytes(many, name):
    content = render(many, name, Medium(width=120))
    if isinstance(content, bytes):
        assert b"horovod" in content
    else:
        assert "horovod" in content
        assert content.endswith("\n")


def test_formats_are_what_they_say(folder):
    assert json.loads(render(folder, "json"))["study"] == "made"
    assert render(folder, "csv").startswith("strategy,workers,")
    assert render(folder, "html").startswith("<!DOCTYPE html>")
    assert "\x1b[" not in render(folder, "table")
    assert "\x1b[" in render(folder, "table", Medium(colour=True))


def test_figures_are_files_for_screens_for_drawing_and_for_paper(folder):
    figures = write_report(folder).figures
    begins = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF-"}
    assert {figure.suffix for figure in figures} == set(begins)
    assert all(figure.read_bytes().startswith(begins[figure.suffix]) for figure in figures)


def test_an_unknown_format_is_refused(folder):
    with pytest.raises(
        UserError, match=r"Expected a report format out of table, csv, json, html, .*Received 'pdf'"
    ):
        render(folder, "pdf")
