"""`scalestudy demo`: the decision and the page of the published study."""

from pathlib import Path

import pytest

from published import column
from scalestudy.features.imported.gather import published_findings


def test_its_table_is_the_published_one():
    rows = {(row.strategy, row.workers): row for row in published_findings().rows}
    for strategy in ("native", "horovod"):
        seconds, iou = column("u_net", f"{strategy}_seconds"), column("u_net", f"{strategy}_iou")
        assert {key[1] for key in rows if key[0] == strategy} == set(seconds)
        for workers in seconds:
            row = rows[strategy, workers]
            assert row.speed.steady.value == pytest.approx(seconds[1] / seconds[workers])
            assert row.quality.value == iou[workers]
    assert len(rows) == 16


def test_it_advises_six_workers_of_horovod_and_calls_that_provisional():
    findings = published_findings()
    decision = findings.advice.decision
    assert (decision.kind, decision.choice.strategy, decision.choice.workers) == ("ask", "horovod", 6)
    assert set(decision.provisional) == {"single-run", "quality-unclear"}
    failing = {
        key.workers
        for key, verdict in decision.verdicts.items()
        if verdict.seems_worse and key.strategy == "native"
    }
    assert {12, 14} <= failing
    assert findings.advice.open_questions


@pytest.mark.slow
def test_it_writes_one_page_and_says_where(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    code, text, errors = call("demo")
    assert (code, errors) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["published-unet.html"]
    assert "Page: published-unet.html" in text.splitlines()
    assert "10.5281/zenodo.7639190" in text
    page = (tmp_path / "published-unet.html").read_text()
    assert all(part in page for part in ("10.5281/zenodo.7639190", "Not settled", "0.486"))


@pytest.mark.parametrize("name", ["page.pdf", "table.csv"])
def test_it_writes_nothing_but_a_page(call, tmp_path: Path, name: str):
    assert call("demo", "--out", tmp_path / name)[0] == 2
    assert not list(tmp_path.iterdir())
