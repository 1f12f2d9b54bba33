import ast
from pathlib import Path

import pytest

from scalestudy.plugins import strategies
from scalestudy.plugins.strategies import REGISTRY, traits
from scalestudy.report.figure import COLOURS, RAMP

SOURCE = Path(strategies.__file__).parents[1]
LIBRARY = {"horovod"}
"""Also the name of a package; the context distinguishes it from the strategy."""


@pytest.mark.parametrize(
    ("name", "processes"),
    [
        ("single", 1),
        ("mirrored", 1),
        ("virtual", 1),
        ("multiworker", 4),
        ("horovod", 4),
    ],
)
def test_only_multiworker_and_horovod_take_a_process_per_worker(name, processes):
    assert traits(name).processes_of(4) == processes


def test_a_strategy_belongs_to_one_engine_and_is_held_against_its_own_alone():
    assert {traits(name).engine for name in REGISTRY.built_in()} == {
        "tensorflow",
        "torch",
    }
    assert strategies.references("tensorflow") == ("single", "native")
    assert strategies.references("torch") == ("ddp", "torch-single")
    assert strategies.references(None) == ("single", "native", "ddp", "torch-single")
    assert strategies.references("theirs") == ()


@pytest.mark.parametrize(
    ("name", "cores"),
    [
        ("single", 3),
        ("horovod", 3),
        ("multiworker", 3),
        ("virtual", 3),
        ("mirrored", 12),
        ("central-storage", 12),
        ("tpu", 12),
    ],
)
def test_strategies_of_several_devices_compute_all_workers_of_a_process_at_a_time(
    name, cores
):
    assert 3 * traits(name).workers_at_once(4) == cores


@pytest.mark.parametrize(
    ("workers", "nodes", "name"),
    [(1, 1, "single"), (4, 1, "mirrored"), (4, 2, "multiworker")],
)
def test_native_stands_for_what_the_workers_ask_for(workers, nodes, name):
    assert traits("native").implementation(workers, nodes) == name


def luminance(colour):
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_colour_stands_out_on_white_and_on_the_dark_page():
    colours = {traits(name).mark[0] for name in REGISTRY.names()} | {*COLOURS, *RAMP}
    for ground in ("#FFFFFF", "#171b20"):
        for colour in colours:
            dark, bright = sorted((luminance(colour), luminance(ground)))
            assert (bright + 0.05) / (dark + 0.05) >= 3, (colour, ground)


def test_every_strategy_has_a_colour_and_a_shape_of_its_own():
    colours, shapes = zip(
        *(traits(name).mark for name in REGISTRY.names()), strict=True
    )
    assert len(set(colours)) == len(set(shapes)) == len(REGISTRY.names())


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("MirroredStrategy", "mirrored"),
        ("tf.distribute.MirroredStrategy()", "mirrored"),
        ("tf.distribute.experimental.CentralStorageStrategy", "central-storage"),
        ("OneDeviceStrategy", "single"),
        ("TPUStrategy", "tpu"),
        ("MultiWorkerMirroredStrategy", "multiworker"),
        ("multi_worker_mirrored", "multiworker"),
        ("HorovodRunner", "horovod"),
        ("hvd", "horovod"),
        ("DistributedDataParallel", "ddp"),
        ("torch.nn.parallel.DistributedDataParallel", "ddp"),
        ("DeepSpeed", None),
    ],
)
def test_a_class_of_another_tool_is_known_as_its_strategy(word, name):
    assert strategies.named(word) == name


def test_whoever_does_the_work_says_how_to_join_and_nobody_else_does():
    for name in REGISTRY.names():
        assert bool(traits(name).join) == (traits(name).stands_for is None)


def test_an_unknown_strategy_of_a_foreign_folder_counts_as_timed_and_comes_last():
    assert strategies.is_timed("theirs")
    assert strategies.position("theirs") == len(REGISTRY.names())


@pytest.mark.slow
def test_no_file_but_the_table_and_the_strategies_names_a_strategy():
    names = set(REGISTRY.built_in()) - LIBRARY
    modules = {
        join.partition(":")[0]
        for name in REGISTRY.built_in()
        if (join := traits(name).join)
    }
    joining = {SOURCE.parent / f"{module.replace('.', '/')}.py" for module in modules}
    for file in SOURCE.rglob("*.py"):
        if (
            file in joining
            or file.parent.name == "plugins"
            or file in SOURCE.glob("engines/*/traits.py")
        ):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            named = isinstance(node, ast.Constant) and node.value in names
            assert not named, (
                f"{file.relative_to(SOURCE)}, line {node.lineno} names {node.value!r}"
            )
