from itertools import groupby
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.study.expand import RunOrder, expand
from scalestudy.study.parse import parse_study
from scalestudy.study.point import Point

ORDER_SEEDS = st.integers(0, 2**32 - 1)
WORKERS = st.lists(st.integers(1, 16), min_size=1, max_size=5, unique=True)
SEEDS = st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True)


def points(workers: list[int], seeds: list[int]) -> list[Point]:
    sweep = f'strategy = ["native", "horovod"]\nworkers = {workers}\nseed = {seeds}\n'
    return expand(parse_study(f'task = "cnn"\n[sweep]\n{sweep}', Path("study.toml")), gpus=0, cores=64)


def row(point: Point) -> tuple[object, ...]:
    return point.strategy, point.workers


def names(found: list[Point]) -> list[str]:
    return [point.name for point in found]


@settings(max_examples=20, deadline=None)
@given(ORDER_SEEDS, WORKERS, SEEDS)
def test_a_block_is_one_seed_and_holds_every_row_once(order_seed: int, workers: list[int], seeds: list[int]):
    given_points = points(workers, seeds)
    found = RunOrder(seed=order_seed).arrange(given_points)
    blocks = [(seed, list(block)) for seed, block in groupby(found, key=lambda point: point.seed)]
    assert [seed for seed, _ in blocks] == seeds
    rows = {row(point) for point in given_points}
    assert all(len(block) == len(rows) and {row(point) for point in block} == rows for _, block in blocks)
    assert [point.turn.place for point in found] == list(range(len(found)))
    assert {point.turn.order for point in found} == {"blocks"}


@settings(max_examples=20, deadline=None)
@given(ORDER_SEEDS, st.permutations([1, 2, 4, 8]), SEEDS, st.data())
def test_adding_seeds_and_workers_leaves_the_rest_in_its_order(
    order_seed: int, workers: list[int], seeds: list[int], data: st.DataObject
):
    order = RunOrder(seed=order_seed)
    fewer = workers[: data.draw(st.integers(1, 3))]
    before = names(order.arrange(points(fewer, seeds)))
    after = names(order.arrange(points(workers, [*seeds, 100])))
    assert [name for name in after if name in before] == before


def test_every_block_has_a_permutation_of_its_own_and_every_call_the_same():
    given_points = points([1, 2, 4, 8], [0, 1, 2])
    found = RunOrder(seed=7).arrange(given_points)
    assert names(RunOrder(seed=7).arrange(given_points)) == names(found)
    rows = [tuple(map(row, block)) for _, block in groupby(found, key=lambda point: point.seed)]
    assert len(set(rows)) == 3
    assert names(RunOrder(seed=8).arrange(given_points)) != names(found)


def test_any_row_comes_first_equally_often():
    given_points = points([1, 2], [0])
    first = [RunOrder(seed=seed).arrange(given_points)[0].name for seed in range(1000)]
    counts = [first.count(name) for name in names(given_points)]
    assert sum(counts) == 1000
    assert all(abs(count - 250) < 60 for count in counts)  # 4.4 standard deviations of a fair draw


def test_rows_are_the_order_in_which_points_are_listed():
    given_points = points([1, 2], [3, 1])
    found = RunOrder(by="rows", seed=7).arrange(given_points)
    assert names(found) == names(given_points)
    assert [(point.turn.order, point.turn.place) for point in found[:2]] == [("rows", 0), ("rows", 1)]


def test_the_order_of_a_new_study_follows_from_its_file():
    assert RunOrder.drawn_from("a study") == RunOrder.drawn_from("a study")
    assert RunOrder.drawn_from("a study").seed != RunOrder.drawn_from("another").seed


def test_a_turn_makes_no_other_point():
    plain = points([2], [0])[0]
    turned = RunOrder().arrange([plain])[0]
    assert turned.same_as(plain)
    assert turned.identity() == plain.identity()
