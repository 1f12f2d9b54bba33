from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.config.expand import expand
from scalestudy.config.file import Study, SweepSettings
from scalestudy.config.parse import parse_study
from scalestudy.config.point import Point
from scalestudy.config.run_order import RunOrder
from scalestudy.util.errors import UserError


def study(text: str = "", task: str = "cnn") -> Study:
    return parse_study(f'task = "{task}"\n{text}', Path("study.toml"))


def points(
    text: str = "", task: str = "cnn", gpus: int = 0, cores: int = 64, **machine: Any
) -> list[Point]:
    return expand(study(text, task), gpus=gpus, cores=cores, **machine)


def refusal(text: str, **machine: Any) -> str:
    with pytest.raises(UserError) as caught:
        points(text, **machine)
    return str(caught.value)


def test_the_product_comes_in_a_stable_order() -> None:
    names = [
        point.name
        for point in points('[sweep]\nstrategy = ["horovod", "virtual"]\nseed = [3, 1]')
    ]
    assert names == [
        f"{strategy}-w{n}-s{s}"
        for strategy in ("horovod", "virtual")
        for n in (1, 2)
        for s in (3, 1)
    ]


def test_native_is_what_tensorflow_has_for_the_workers_and_nodes() -> None:
    result = {
        point.workers: point.implementation
        for point in points("[sweep]\nworkers = [1, 2]\nseed = 0")
    }
    assert result == {1: "single", 2: "mirrored"}
    result = {
        point.workers: point.implementation
        for point in points(
            "[sweep]\nworkers = [1, 2, 3]\nseed = 0", cluster=True, tasks_per_node=2
        )
    }
    assert result == {1: "single", 2: "mirrored", 3: "multiworker"}


def test_single_is_taken_at_one_worker_only() -> None:
    names = [
        point.name
        for point in points('[sweep]\nstrategy = ["single", "horovod"]\nseed = 0')
    ]
    assert names == ["single-w1-s0", "horovod-w1-s0", "horovod-w2-s0"]


@pytest.mark.parametrize("strategy", ["horovod", "ddp", "mirrored"])
def test_collectives_that_no_strategy_chooses_are_refused_with_their_line(
    strategy,
) -> None:
    text = (
        f'[launch]\ncommunication = "nccl"\n[sweep]\nseed = 0\nstrategy = ["{strategy}"'
    )
    assert "study.toml, line 3" in refusal(f"{text}]")
    assert len(points(f'{text}, "native"]')) == 4


def test_task_defaults_are_filled_in_and_given_values_kept() -> None:
    unet = points("[train]\nepochs = 3", task="unet")[0]
    assert unet.data.source == "indents"
    assert (unet.train.epochs, unet.train.batch_size, unet.train.schedule) == (
        3,
        16,
        "steps",
    )
    cnn = points()[0]
    assert cnn.data.source == "digits"
    assert (cnn.train.epochs, cnn.train.optimizer, cnn.train.learning_rate) == (
        8,
        "adam",
        1e-3,
    )


def test_swept_values_reach_their_section_and_the_name() -> None:
    result = points(
        '[sweep]\nworkers = 1\nseed = 0\nbatch_size = [8, 16]\nlearning_rate = 1e-7\n"data.seed" = 2'
    )
    assert [point.train.batch_size for point in result] == [8, 16]
    assert result[0].data.seed == 2
    assert result[0].swept == {
        "train.batch_size": 8,
        "train.learning_rate": 1e-7,
        "data.seed": 2,
    }
    assert result[0].name == "native-w1-s0-batch_size=8-learning_rate=1e-07-data.seed=2"


def test_workers_that_share_cores_run_and_are_marked() -> None:
    result = points("[sweep]\nworkers = [1, 2, 4]\nseed = 0", cores=2)
    assert [point.oversubscribed for point in result] == [
        None,
        None,
        "4 workers of 1 core on 2 cores",
    ]


def test_virtual_workers_are_one_process() -> None:
    assert (
        points('[sweep]\nstrategy = "virtual"\nworkers = 64\nseed = 0', cores=1)[
            0
        ].oversubscribed
        is None
    )
    wide = points(
        '[sweep]\nstrategy = "virtual"\nworkers = 2\nseed = 0\n[launch]\ncpus_per_worker = 4',
        cores=2,
    )
    assert wide[0].oversubscribed == "1 process of 4 cores on 2 cores"


def test_on_a_cluster_workers_take_as_many_nodes_as_they_need() -> None:
    assert points("[sweep]\nworkers = [1, 64]", gpus=4, cores=4, cluster=True)
    by_cores = points("[sweep]\nworkers = 9\nseed = 0", cores=8, cluster=True)
    assert by_cores[0].implementation == "multiworker"


THOUSAND = list(range(1, 1001))
TF32 = '[train]\nprecision = "tf32"\n[sweep]\nworkers = 1\nseed = 0'
MICRO = (
    '[train]\nbatch = "global"\nbatch_size = 5\naccumulate = {}\n[sweep]\nworkers = 2'
)
SMALL_BUCKETS = '[launch]\nbucket_size = "{}"\n[train]\ncompile = true\n[sweep]\nstrategy = "ddp"\nworkers = 2'


def test_asynchronous_workers_are_not_deterministic_and_refuse_what_needs_a_common_step():
    sweep = '[sweep]\nstrategy = "parameter-server"\nworkers = [1, 2]\nseed = 0'
    assert [point.train.deterministic for point in points(sweep)] == [True, False]
    for line in (
        "deterministic = true",
        "sync_batch_norm = true",
        'precision = "mixed_float16"',
    ):
        key = line.partition(" ")[0]
        with pytest.raises(
            UserError,
            match=rf"train\.{key} other than .*parameter-server-w2-s0.*line 3",
        ):
            points(f"[train]\n{line}\n{sweep}")


SCALED = '[train]\nlearning_rate_scaling = "sqrt"\noptimizer = "{}"\n[sweep]\nworkers = [1, 14, 64]'
COMPILED = "[train]\nxla = true\nsync_batch_norm = true\n[sweep]\nstrategy = "


@pytest.mark.parametrize(
    ("text", "machine", "words"),
    [
        ('[sweep]\nstrategy = "single"\nworkers = [2, 4]', {}, ["study.toml, line 4"]),
        (
            '[sweep]\nstrategy = "MirroredStrategy"',
            {},
            ["study.toml, line 3", 'Write "mirrored"'],
        ),
        (
            '[train]\nxla = true\n[sweep]\nstrategy = "central-storage"\nworkers = 1',
            {},
            ["xla = false under central-storage"],
        ),
        (
            "[sweep]\nworkers = [1, 8]",
            {"gpus": 2},
            ["8 workers on 2 GPUs", "study.toml, line 3"],
        ),
        (
            '[sweep]\nstrategy = "mirrored"\nworkers = 8',
            {"gpus": 4, "cluster": True},
            ["8 workers, which need 2 nodes", "study.toml, line 4"],
        ),
        (
            "[launch]\ncpus_per_worker = 12",
            {"gpus": 4, "cores": 16, "cluster": True},
            ["2 workers of 12 cores on 16 cores", "tasks_per_node"],
        ),
        (
            '[train]\nbatch = "global"\nbatch_size = 3\n[sweep]\nworkers = [2, 4]',
            {},
            ["each of the 4 workers", "study.toml, line 4"],
        ),
        (MICRO.format(3), {}, ["3 micro-batches of each of the 2 workers"]),
        *(
            (f'{COMPILED}"{name}"', {}, ["line 4", name])
            for name in ("mirrored", "multiworker", "horovod")
        ),
        (
            '[train]\noptimizer = "lamb"\n[sweep]\nstrategy = "ddp"',
            {},
            ["an optimizer of torch", "study.toml, line 3"],
        ),
        (
            '[train]\nxla = true\n[sweep]\nstrategy = "ddp"',
            {},
            ["xla = false under ddp", "line"],
        ),
        (
            '[train]\nfind_unused_parameters = true\n[sweep]\nstrategy = "native"',
            {},
            ["find_unused_parameters = false under tensorflow", "study.toml, line 3"],
        ),
        (SMALL_BUCKETS.format("64 KiB"), {}, ["at least 1 MiB", "study.toml, line 3"]),
        (TF32, {}, ["a CPU for point native-w1-s0 (study.toml, line 3"]),
        (
            f'[launch]\ndevice = "cpu"\n{TF32}',
            {"gpus": 1, "capability": (8, 0)},
            ["a CPU"],
        ),
        (TF32, {"gpus": 1, "capability": (7, 0)}, ["compute capability 7.0"]),
        (
            '[train]\nweights = "/etc/passwd"\n[sweep]\nworkers = 1\nseed = 0',
            {},
            ["study.toml, line 3"],
        ),
        (
            f"[sweep]\nseed = {THOUSAND}\nepochs = {THOUSAND}\nbatch_size = {THOUSAND}",
            {},
            ["2000000000 combinations"],
        ),
    ],
)
def test_what_cannot_run_is_refused(
    text: str, machine: dict[str, Any], words: list[str]
) -> None:
    message = refusal(text, **machine)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("text", "machine"),
    [
        (MICRO.format(2), {}),
        (SMALL_BUCKETS.format("1 MiB"), {}),
        (SMALL_BUCKETS.format("64 KiB").replace("workers = 2", "workers = 1"), {}),
        (TF32, {"gpus": 1, "capability": (8, 0)}),
        (TF32, {"gpus": 1}),
        ('[train]\nxla = true\n[sweep]\nstrategy = ["mirrored", "horovod"]', {}),
        (f'{COMPILED}["single", "virtual"]', {}),
        ('[launch]\ndevice = "cpu"\n[sweep]\nworkers = 8', {"gpus": 2}),
        ('[sweep]\nstrategy = "virtual"\nworkers = 64\nseed = 0', {"gpus": 1}),
        *((SCALED.format(name), {}) for name in ("adam", "adamw", "lamb", "momentum")),
    ],
)
def test_what_can_run_is_not_refused(text: str, machine: dict[str, Any]) -> None:
    assert points(text, **machine)


@pytest.mark.parametrize(
    ("settings", "strategy", "received", "offered"),
    [
        ('[launch]\ncompression = "fp16"', "virtual", "virtual", ["horovod"]),
        ('[launch]\ncompression = "fp16"', "native", "mirrored", ["horovod"]),
        ('[launch]\ncompression = "fp16"', "multiworker", "multiworker", ["horovod"]),
        ('[launch]\ncompression = "bf16"', "horovod", "horovod", []),
    ],
)
def test_an_option_that_a_strategy_lacks_is_refused_with_those_that_have_it(
    settings, strategy, received, offered
) -> None:
    text = f'{settings}\n[sweep]\nstrategy = "{strategy}"\nworkers = '
    message = refusal(f"{text}[1, 2]")
    first = 2 if strategy == "native" else 1
    assert (
        f"{received}, for point {strategy}-w{first}-s0 (study.toml, line 3)" in message
    )
    assert all(f'"{name}"' in message for name in offered)
    assert message.count('"') == 2 * len(offered)
    if strategy == "native":
        assert points(f"{text}[1]"), "plain training, the baseline of others"


@pytest.mark.parametrize(
    "settings",
    [
        "accumulate = 2\nsync_batch_norm = true",
        'precision = "float64"\n[launch]\ncompression = "fp16"',
    ],
)
def test_options_of_the_exchange_that_contradict_each_other_are_refused(
    settings,
) -> None:
    sweep = '[sweep]\nstrategy = "horovod"\nworkers = 2'
    names = [line.split(" = ")[0] for line in settings.splitlines() if " = " in line]
    message = refusal(f"[train]\n{settings}\n{sweep}")
    assert all(name in message for name in names)
    for setting in settings.replace("[launch]\n", "").splitlines():
        section = "launch" if setting.startswith("compression") else "train"
        assert points(f"[{section}]\n{setting}\n{sweep}")


def test_runs_repeat_bit_for_bit_by_default_on_cpus_alone() -> None:
    def chosen(text: str = "", **machine: Any) -> list[bool]:
        return [
            point.train.deterministic
            for point in points(f"{text}\n[sweep]\nseed = 0", **machine)
        ]

    assert chosen() == [True, True]
    assert chosen(gpus=2) == [False, False]
    assert chosen('[launch]\ndevice = "cpu"', gpus=2) == [True, True]
    assert chosen("[train]\ndeterministic = true", gpus=2) == [True, True]
    assert chosen("[train]\ndeterministic = false") == [False, False]


def test_rules_that_give_one_worker_the_same_rate_train_it_once() -> None:
    rules = '"train.learning_rate_scaling" = ["none", "sqrt", "linear"]'
    found = points(
        f'[sweep]\nstrategy = "virtual"\nworkers = [1, 4, 8, 16]\nseed = 0\n{rules}'
    )
    assert len(found) == 10
    one, *more = found
    assert [swept["train.learning_rate_scaling"] for swept in one.also] == [
        "sqrt",
        "linear",
    ]
    assert not any(point.also for point in more)


@pytest.mark.parametrize(("accumulate", "count"), [(1, 3), (2, 4)])
def test_a_batch_of_one_worker_is_that_of_all_only_without_accumulation(
    accumulate, count
) -> None:
    swept = '"train.batch" = ["per-worker", "global"]'
    text = f'[train]\naccumulate = {accumulate}\n[sweep]\nstrategy = "virtual"\nworkers = [1, 4]\nseed = 0\n'
    assert len(points(text + swept)) == count


def test_a_study_made_without_a_file_is_refused_without_a_line() -> None:
    made = Study(name="x", task="cnn", sweep=SweepSettings(workers=(8,)))
    with pytest.raises(UserError) as caught:
        expand(made, gpus=2, cores=2)
    assert "line" not in str(caught.value)


VALUES = {
    "train.learning_rate": st.floats(1e-300, 1e6),
    "train.batch_size": st.integers(1, 10**6),
    "data.source": st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        min_size=1,
        max_size=90,
    ),
    "train.xla": st.booleans(),
    "data.validation": st.one_of(st.just("given"), st.floats(0.01, 0.99)),
}


def lists(
    values: st.SearchStrategy[Any], most: int = 2
) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=1, max_size=most, unique=True)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    workers=lists(st.integers(1, 512), 3),
    seeds=lists(st.integers(0, 10**9)),
    strategies=lists(
        st.sampled_from(["native", "mirrored", "multiworker", "horovod", "virtual"]), 5
    ),
    other=st.fixed_dictionaries(
        {}, optional={name: lists(values) for name, values in VALUES.items()}
    ),
)
def test_every_sweep_expands_to_all_its_points_under_unique_names_fit_for_folders(
    workers: list[int],
    seeds: list[int],
    strategies: list[Any],
    other: dict[str, list[Any]],
) -> None:
    sweep = SweepSettings(
        strategy=tuple(strategies),
        workers=tuple(workers),
        seed=tuple(seeds),
        other=other,
    )
    made = Study(name="x", task="cnn", sweep=sweep)
    result = expand(made, gpus=0, cores=4)
    count = len(workers) * len(seeds) * len(strategies)
    for values in other.values():
        count *= len(values)
    names = [point.name for point in result]
    assert len(names) == count == len(set(names))
    assert all(
        len(name.encode()) <= 200 and "/" not in name and name.isprintable()
        for name in names
    )
    assert result == expand(made, gpus=0, cores=4)
    for point in result:
        for name, value in point.swept.items():
            section, key = name.split(".")
            assert getattr(getattr(point, section), key) == value
        assert Point.model_validate_json(point.model_dump_json()) == point
        assert None not in (
            point.train.epochs,
            point.train.batch_size,
            point.train.learning_rate,
        )


ORDER_SEEDS = st.integers(0, 2**32 - 1)
WORKERS = st.lists(st.integers(1, 16), min_size=1, max_size=5, unique=True)
SEEDS = st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True)


def swept_points(workers: list[int], seeds: list[int]) -> list[Point]:
    sweep = f'strategy = ["native", "horovod"]\nworkers = {workers}\nseed = {seeds}\n'
    return expand(
        parse_study(f'task = "cnn"\n[sweep]\n{sweep}', Path("study.toml")),
        gpus=0,
        cores=64,
    )


def row(point: Point) -> tuple[object, ...]:
    return point.strategy, point.workers


def names(found: list[Point]) -> list[str]:
    return [point.name for point in found]


@settings(max_examples=20, deadline=None)
@given(ORDER_SEEDS, WORKERS, SEEDS)
def test_a_block_is_one_seed_and_holds_every_row_once(
    order_seed: int, workers: list[int], seeds: list[int]
):
    given_points = swept_points(workers, seeds)
    result = RunOrder(seed=order_seed).arrange(given_points)
    blocks = [
        (seed, list(block))
        for seed, block in groupby(result, key=lambda point: point.seed)
    ]
    assert [seed for seed, _ in blocks] == seeds
    rows = {row(point) for point in given_points}
    assert all(
        len(block) == len(rows) and {row(point) for point in block} == rows
        for _, block in blocks
    )
    assert [point.place for point in result] == list(range(len(result)))
    assert {point.blocks for point in result} == {len(seeds)}


@settings(max_examples=20, deadline=None)
@given(ORDER_SEEDS, st.permutations([1, 2, 4, 8]), SEEDS, st.data())
def test_adding_seeds_and_workers_leaves_the_rest_in_its_order(
    order_seed: int, workers: list[int], seeds: list[int], data: st.DataObject
):
    order = RunOrder(seed=order_seed)
    fewer = workers[: data.draw(st.integers(1, 3))]
    before = names(order.arrange(swept_points(fewer, seeds)))
    after = names(order.arrange(swept_points(workers, [*seeds, 100])))
    assert [name for name in after if name in before] == before


def test_every_block_has_a_permutation_of_its_own_and_every_call_the_same():
    given_points = swept_points([1, 2, 4, 8], [0, 1, 2])
    result = RunOrder(seed=7).arrange(given_points)
    assert names(RunOrder(seed=7).arrange(given_points)) == names(result)
    rows = [
        tuple(map(row, block))
        for _, block in groupby(result, key=lambda point: point.seed)
    ]
    assert len(set(rows)) == 3
    assert names(RunOrder(seed=8).arrange(given_points)) != names(result)


def test_any_row_comes_first_equally_often():
    given_points = swept_points([1, 2], [0])
    first = [RunOrder(seed=seed).arrange(given_points)[0].name for seed in range(1000)]
    counts = [first.count(name) for name in names(given_points)]
    assert sum(counts) == 1000
    assert all(
        abs(count - 250) < 60 for count in counts
    )  # 4.4 standard deviations of a fair draw


def test_a_place_makes_no_other_point():
    plain = swept_points([2], [0])[0]
    turned = RunOrder().arrange([plain])[0]
    assert turned.same_as(plain)
    assert turned.identity() == plain.identity()
