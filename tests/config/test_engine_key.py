"""`engine`: one engine, or several that are compared."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.expand import expand
from scalestudy.config.file import Study, study_toml
from scalestudy.config.parse import parse_study
from scalestudy.plugins import engines, strategies
from scalestudy.plugins.strategies import Traits, of_engine, traits
from scalestudy.util.errors import UserError

FILE = Path("study.toml")
OTHERS = (
    Traits("rows", "a process a worker", "other", processes="per-worker", plain=True, common_name="native"),
    Traits("rows-single", "alone", "other", most_workers=1, plain=True, common_name="single"),
    Traits("rows-local", "its own", "other", common_name="local"),
)
WORDS = ["native", "single", "mirrored", "horovod", "virtual", "local", *(row.name for row in OTHERS)]


class Other(engines.EngineTraits):
    name = label = "other"
    strategies = OTHERS
    default_strategy = "rows"


@pytest.fixture(scope="module", autouse=True)
def other():
    """Register another engine beside ours."""
    with pytest.MonkeyPatch.context() as patch:
        rows = {row.name: row for row in OTHERS}
        for registry, items in ((strategies.REGISTRY, rows), (engines.REGISTRY, {"other": Other()})):
            for name, item in items.items():
                patch.setitem(registry._table, name, "")
                patch.setitem(registry._loaded, name, item)
        yield


def study(top: str = "", sweep: str = "") -> Study:
    return parse_study(f'task = "cnn"\n{top}\n[sweep]\n{sweep}\n', FILE)


def refusal(top: str = "", sweep: str = "") -> UserError:
    with pytest.raises(UserError) as caught:
        study(top, sweep)
    return caught.value


def points(top: str, sweep: str) -> list[tuple[str, str]]:
    found = expand(study(top, f"{sweep}\nseed = 0"), gpus=0, cores=4)
    return [(point.engine, point.name) for point in found]


def test_without_it_tensorflow_computes_and_every_point_names_it():
    assert (study().engine, study().sweep.strategy) == (("tensorflow",), ("native",))
    assert {engine for engine, _ in points("", "")} == {"tensorflow"}


def test_it_is_read_as_it_is_written():
    assert parse_study(study_toml(study('engine = "other"')), FILE).engine == ("other",)


@pytest.mark.parametrize("value", ['"tensorflaw"', "1", '["tensorflow", "tensorflaw"]', "[]"])
def test_an_engine_that_there_is_not_is_refused_with_its_line(value):
    assert "line 2" in refusal(f"engine = {value}").received
    assert "engine" in refusal(f"engine = {value}").expected
    assert "line 4" in refusal(sweep=f"engine = {value}").received


def test_it_stands_at_the_top_or_in_the_sweep_and_not_at_both():
    both = 'engine = ["tensorflow", "other"]'
    assert study(both) == study(sweep=both)
    assert "line 4" in refusal('engine = "other"', 'engine = "other"').received


def test_each_engine_s_own_way_is_swept_where_no_strategy_is_named():
    both = study('engine = ["other", "tensorflow"]')
    assert (both.engine, both.sweep.strategy) == (("other", "tensorflow"), ("rows", "native"))


def test_a_common_name_is_a_strategy_of_each_engine_and_points_keep_its_own_name():
    assert points('engine = ["tensorflow", "other"]', 'strategy = ["native", "single"]') == [
        ("tensorflow", "native-w1-s0"),
        ("tensorflow", "native-w2-s0"),
        ("tensorflow", "single-w1-s0"),
        ("other", "rows-w1-s0"),
        ("other", "rows-w2-s0"),
        ("other", "rows-single-w1-s0"),
    ]
    assert points('engine = "other"', 'strategy = "single"') == [("other", "rows-single-w1-s0")]


def test_a_strategy_that_one_engine_has_gives_points_of_that_one():
    both = 'engine = ["tensorflow", "other"]'
    assert study(both, 'strategy = ["native", "mirrored"]').sweep.strategy == ("native", "mirrored", "rows")
    assert study(both, 'strategy = ["mirrored", "local"]').sweep.strategy == ("mirrored", "rows-local")


def test_two_words_for_a_strategy_give_its_points_once():
    both = 'engine = ["tensorflow", "other"]'
    assert study(both, 'strategy = ["native", "rows"]').sweep.strategy == ("native", "rows")


def test_without_engine_strategies_of_several_are_swept_together_by_their_own_names():
    text = 'strategy = ["native", "rows", "single"]'
    assert study(sweep=text).engine == ("tensorflow", "other")
    assert study(sweep=text).sweep.strategy == ("native", "rows", "single")
    assert 'engine = "other"' in refusal(sweep='strategy = "local"').action


@pytest.mark.parametrize(
    ("engine", "strategy", "instead"),
    [
        ('"other"', '"horovod"', 'engine = "tensorflow"'),
        ('"tensorflow"', '"rows"', 'engine = "other"'),
        ('"tensorflow"', '"local"', 'engine = "other"'),
        ('["tensorflow", "other"]', '"horovod"', '"other" out of engine'),
        ('["tensorflow", "other"]', '["local", "rows"]', '"tensorflow" out of engine'),
    ],
)
def test_a_word_of_no_engine_and_an_engine_without_points_are_refused(engine, strategy, instead):
    refused = refusal(f"engine = {engine}", f"strategy = {strategy}")
    assert "line 4" in refused.received
    assert instead in refused.action


@given(
    st.lists(st.sampled_from(["tensorflow", "other"]), unique=True),
    st.lists(st.sampled_from(WORDS), min_size=1, unique=True),
)
def test_every_point_is_of_an_engine_that_is_named_and_of_a_strategy_that_a_word_means(chosen, words):
    lines = f"strategy = {words}\nworkers = [1, 2]\nseed = 0"
    try:
        found = study(f"engine = {chosen}" if chosen else "", lines)
    except UserError:
        known = [row for engine in chosen or ["tensorflow", "other"] for row in of_engine(engine)]
        names = {row.name for row in known} | {row.common_name for row in known if chosen}
        lonely = [e for e in chosen if not any({r.name, r.common_name} & set(words) for r in of_engine(e))]
        assert lonely or set(words) - names
        return
    assert set(found.engine) == set(chosen or {traits(name).engine for name in words})
    for name in found.sweep.strategy:
        row = traits(name)
        assert row.engine in found.engine
        assert {row.name} & set(words) if not chosen else {row.name, row.common_name} & set(words)
    for word in words:
        meant = [traits(name) for name in found.sweep.strategy]
        assert any(word in (row.name, row.common_name) for row in meant)
    expanded = expand(found, gpus=0, cores=4)
    assert len({point.name for point in expanded}) == len(expanded)
    assert {(point.engine, point.strategy) for point in expanded} == {
        (traits(name).engine, name) for name in found.sweep.strategy
    }
    assert parse_study(study_toml(found), FILE) == found


def of_a_module(text: str = "") -> Study:
    return parse_study(f'task = "torch_cnn"\n{text}\n', FILE)


def test_a_task_that_needs_an_engine_has_its_default_strategy_and_its_words():
    assert (of_a_module().engine, of_a_module().sweep.strategy) == (("torch",), ("ddp",))
    swept = of_a_module('[sweep]\nstrategy = ["single", "native", "virtual"]').sweep.strategy
    assert set(swept) == {"torch-single", "ddp", "torch-virtual"}


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ('engine = "tensorflow"', "'tensorflow'"),
        ('[sweep]\nengine = ["torch", "tensorflow"]', "'tensorflow'"),
        ('[sweep]\nstrategy = ["ddp", "horovod"]', "'horovod'"),
    ],
)
def test_other_engines_and_strategies_are_refused_for_it(text, received):
    with pytest.raises(UserError) as caught:
        of_a_module(text)
    assert caught.value.received.strip("'\"`").startswith(received.strip("'"))


def test_a_task_file_names_an_engine_that_there_is(tmp_path):
    (tmp_path / "own.py").write_text('engine = "tensorflaw"\n')
    with pytest.raises(UserError) as caught:
        parse_study('task = "own.py"', tmp_path / "study.toml")
    assert "tensorflaw" in caught.value.received


def test_a_task_file_that_imports_pytorch_alone_is_of_its_engine_unless_the_study_names_one(tmp_path):
    task, file = tmp_path / "own.py", tmp_path / "study.toml"
    task.write_text("from torch import nn\n")
    assert parse_study('task = "own.py"', file).sweep.strategy == ("ddp",)
    assert parse_study('task = "own.py"\nengine = "tensorflow"', file).sweep.strategy == ("native",)
    with pytest.raises(UserError) as refused:
        parse_study('task = "own.py"\n[sweep]\nstrategy = "mirrored"', file)
    assert "study.toml, line 3" in refused.value.received and '"tensorflow"' in refused.value.action


def test_a_task_file_that_imports_two_engines_is_asked_which_unless_something_says_it(tmp_path):
    task, file = tmp_path / "own.py", tmp_path / "study.toml"
    task.write_text("import keras\nimport torch\n")
    for text in ("", '[sweep]\nstrategy = ["mirrored", "single"]'):
        with pytest.raises(UserError) as refused:
            parse_study(f'task = "own.py"\n{text}', file)
        assert "study.toml, line 1" in refused.value.received
        assert all(f'engine = "{name}"' in refused.value.action for name in ("tensorflow", "torch"))
    assert parse_study('task = "own.py"\n[sweep]\nstrategy = "ddp"', file).sweep.strategy == ("ddp",)
    for name in ("tensorflow", "torch"):
        assert parse_study(f'task = "own.py"\nengine = "{name}"', file).engine == (name,)
        task.write_text(f'import keras\nimport torch\nengine = "{name}"\n')
        assert parse_study('task = "own.py"', file).engine == (name,)
        task.write_text("import keras\nimport torch\n")
