import json
import re
from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.figures import figures
from scalestudy.report.html import script_json, to_html
from scalestudy.report.images import draw
from scalestudy.report.places import drawing
from scalestudy.report.run_lines import run_lines
from scalestudy.report.scores import score_tables
from scalestudy.report.view import view

NASTY = "</title><script>alert('name')</script>"


def page(runs, planned=(), name="made"):
    findings = analyse(name, runs, planned)
    return to_html(findings, [draw(figure) for figure in figures(findings)])


@pytest.fixture(scope="module")
def nasty():
    runs = synthetic.seeded((1, 2), ("horovod", "virtual"), swept={"train.note": "</script><script>alert(1)"})
    return page(runs, synthetic.unfinished(), NASTY)


def test_text_of_users_cannot_become_markup(nasty):
    assert "alert('name')" not in nasty.replace("alert(&#39;name&#39;)", "")
    assert "<script>alert" not in nasty
    assert nasty.count("<script") == nasty.count("</script") == 4


def test_nothing_is_loaded_from_a_network(nasty):
    markup = re.sub(r"<script.*?</script>", "", nasty, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href|srcset|action)\s*=\s*["']?\s*(?:https?:)?//""", markup)
    assert "@import" not in markup
    assert not re.findall(r"<script[^>]*\bsrc", nasty)


def charts(text):
    return json.loads(re.search(r'id="charts">(.*?)</script>', text, re.DOTALL)[1])


def test_every_place_has_its_chart_its_still_and_its_choices(nasty):
    drawn = charts(nasty)["figures"]
    shown = re.findall(r'data-chart="([^"]+)"', nasty)
    assert shown == [
        "time-and-cost", "speedup", "quality", "efficiency", "phases", "loss-by-epoch",
    ]  # fmt: skip
    assert set(re.findall(r'<option value="([^"]+)"', nasty)) | set(shown) == set(drawn)
    assert nasty.count('class="still"') == nasty.count("<figure") == 6


def test_data_are_kept_once_whatever_is_drawn_of_them(nasty):
    found = charts(nasty)
    losses = [found["figures"][f"loss-by-{name}"]["spec"]["datasets"] for name in ("epoch", "time")]
    assert losses[0] == losses[1]
    assert all(name in found["datasets"] for name in losses[0])


def test_a_large_study_has_a_page_of_bounded_weight():
    counts = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)
    names = ("single", "native", "mirrored", "multiworker", "horovod", "virtual")
    findings = analyse("large", synthetic.seeded(counts, names, seeds=5))
    text = script_json(drawing([draw(figure) for figure in figures(findings)]))
    assert len(text) < 700_000


def test_runs_are_folded_away_and_say_how_many_are_in_each_state(nasty):
    assert re.search(
        r'<details class="runs" id="runs">\s*<summary><h2>Runs</h2> <span>1 failed, 1 missing', nasty
    )
    assert "<summary>Last lines of its log</summary>" in nasty


def test_a_page_lists_so_many_runs_and_says_how_many_more_there_are(monkeypatch):
    monkeypatch.setattr("scalestudy.report.html.MOST", 2)
    text = page(synthetic.seeded((1,), ("horovod",), seeds=3))
    assert "1 more are in the folder's <code>points</code>" in text
    assert text.count('class="state') == 2


def test_a_page_shows_so_many_rows_and_the_advised_one_and_says_how_many_more_there_are(monkeypatch):
    runs = synthetic.seeded((1, 2, 4, 8), ("mirrored",))
    assert "more rows are in" not in page(runs)
    monkeypatch.setattr("scalestudy.report.html.MOST_ROWS", 1)
    text = page(runs)
    assert "2 more rows are in <code>--format csv</code>" in text
    assert text.count('<th scope="row" data-value="mirrored">') == 2 and '<tr class="chosen' in text


def test_few_rows_need_no_filters_and_many_have_them():
    assert 'data-tools="results"' not in page(synthetic.seeded((1, 2), ("horovod",), seeds=1))
    many = page(synthetic.seeded((1, 2, 4), ("mirrored", "horovod"), seeds=1))
    assert 'data-column="0" data-value="mirrored"' in many


def test_one_run_each_is_said_to_have_no_interval():
    assert "One run each: no interval" in page(synthetic.seeded((1, 2), ("horovod",), seeds=1))
    assert "Small figures are the ends" in page(synthetic.seeded((1, 2), ("horovod",), seeds=2))


def test_the_decision_comes_first_and_what_is_not_settled_after_its_figure():
    findings = analyse("made", synthetic.seeded(), synthetic.unfinished())
    text = page(synthetic.seeded(), synthetic.unfinished())
    parts = (
        findings.advice.headline, findings.advice.cost, 'class="cards"', 'id="results"', 'id="time-and-cost"',
        'id="open"', 'id="figures"', 'id="measured"', 'id="runs"',
    )  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_failed_run_is_no_secret_of_a_mean():
    qualities = {1: (0.95, 0.951, 0.952), 2: (0.95, 0.951, 0.11)}
    runs = [
        synthetic.run("horovod", workers, seed, metric="accuracy", quality=quality, chance=0.12)
        for workers, values in qualities.items()
        for seed, quality in enumerate(values)
    ]
    (note,) = view(analyse("made", runs)).footnotes[:1]
    assert "1 of 3" in note and "0.110" in note
    (table,) = [each for each in score_tables(analyse("made", runs)) if "Failed" in each.columns]
    assert table.lines[1] == ("horovod on 2 workers", ("3", "1", "0.110"))


def test_the_list_of_runs_has_their_order_nodes_and_times():
    run = synthetic.run()
    taken = {"place": 4, "order": "blocks", "hosts": ["node07", "node08"], "began": 1767323000.0}
    (line,) = run_lines(analyse("made", [replace(run, result=run.result.model_copy(update=taken))]), "..")
    assert (line.place, line.nodes) == ("5", "node07 and 1 more")
    assert (line.began, line.finished) == ("2026-01-02 03:03", "2026-01-02 03:04")
    (line,) = run_lines(analyse("made", [run]), "..")
    assert (line.place, line.nodes, line.began) == ("", "", "")


def test_contents_name_what_is_there_and_nothing_else(nasty):
    targets = re.findall(r"<nav.*?</nav>", nasty, re.DOTALL)[0]
    for name in re.findall(r'href="#([^"]+)"', targets):
        assert f'id="{name}"' in nasty
    assert "#figures" not in re.findall(r"<nav.*?</nav>", page([], synthetic.unfinished()), re.DOTALL)[0]


def test_the_charting_library_is_there_once(nasty):
    assert nasty.count("window.vegaEmbed=") == 1


def test_failed_and_missing_runs_are_listed_with_their_reasons(nasty):
    text = re.sub(r"<[^>]+>", " ", nasty)
    assert "Rank 3 was ended by signal 9" in text
    assert "E tensorflow: out of memory" in text
    assert 'class="state missing"' in nasty
    assert 'href="../points/horovod-w8-s2/run-1/"' in nasty


def test_the_page_says_how_it_was_measured_and_on_what(nasty):
    for words in ("How this was measured", "all but the first", "each sample once", "Environment"):
        assert words in nasty
    assert "Made CPU @ 2.5 GHz" in nasty
    assert "one after another" in nasty


def test_a_page_without_results_needs_no_charts():
    text = page([], synthetic.unfinished())
    assert "No run has finished" in text
    assert "vegaEmbed" not in text
    assert "horovod-w16-s0" in text


def test_json_in_a_script_holds_no_markup_and_comes_back_whole():
    value = {"a": "</script><!-- & \u2028"}
    assert not set("<>&\u2028") & set(script_json(value))
    assert json.loads(script_json(value)) == value


def test_a_verdict_on_what_learned_nothing_stands_out():
    runs = [synthetic.run("horovod", n, metric="accuracy", quality=0.1 * n, chance=0.12) for n in (1, 2)]
    shown = page(runs)
    assert '<small class="verdict worse">learned nothing: accuracy 0.100' in shown
    assert shown.count('<small class="verdict worse">') == 1
