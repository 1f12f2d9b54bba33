import json
import re

import made
import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.report.figures import figures
from scalestudy.report.html import script_json, to_html
from scalestudy.report.images import draw

NASTY = "</title><script>alert('name')</script>"


def page(runs, planned=(), name="made"):
    findings = analyse(name, runs, planned)
    return to_html(findings, [draw(figure) for figure in figures(findings)])


@pytest.fixture(scope="module")
def nasty():
    runs = made.seeded((1, 2), ("horovod", "virtual"), swept={"train.note": "</script><script>alert(1)"})
    return page(runs, made.unfinished(), NASTY)


def test_text_of_users_cannot_become_markup(nasty):
    assert "alert('name')" not in nasty.replace("alert(&#39;name&#39;)", "")
    assert "<script>alert" not in nasty
    assert nasty.count("<script") == nasty.count("</script") == 4


def test_nothing_is_loaded_from_a_network(nasty):
    markup = re.sub(r"<script.*?</script>", "", nasty, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href|srcset|action)\s*=\s*["']?\s*(?:https?:)?//""", markup)
    assert "@import" not in markup
    assert not re.findall(r"<script[^>]*\bsrc", nasty)


def test_every_figure_has_its_chart_its_still_and_its_files(nasty):
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', nasty, re.DOTALL)[1])
    for name in charts["specs"]:
        assert f'data-chart="{name}"' in nasty
        assert f'download="{name}.png" href="data:image/png;base64,' in nasty
        assert f'download="{name}.svg" href="data:image/svg+xml;base64,' in nasty
    assert nasty.count('class="still"') == len(charts["specs"]) == 6


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
    text = page([], made.unfinished())
    assert "No run has finished" in text
    assert "vegaEmbed" not in text
    assert "horovod-w16-s0" in text


def test_json_in_a_script_holds_no_markup_and_comes_back_whole():
    value = {"a": "</script><!-- & \u2028"}
    assert not set("<>&\u2028") & set(script_json(value))
    assert json.loads(script_json(value)) == value


def test_a_verdict_on_what_learned_nothing_stands_out():
    runs = [made.run("horovod", n, metric="accuracy", quality=0.1 * n, chance=0.12) for n in (1, 2)]
    shown = page(runs)
    assert '<small class="verdict worse">learned nothing: accuracy 0.100' in shown
    assert '<small class="verdict">horovod on 1 worker learned nothing' in shown
