import made
import pytest

from scalestudy.analysis.measures import measure
from scalestudy.analysis.runs import Run, grouped
from scalestudy.analysis.scaling.by_node import by_node
from scalestudy.analysis.scaling.series import series_of


def on_nodes(run, per_node):
    """The run with a record of each of its ranks."""
    size = run.result.workers
    ranks = tuple(
        made.rank(size).model_copy(update={"rank": rank, "host": f"node{rank // per_node}"})
        for rank in range(size)
    )
    return Run(run.result, run.epochs, run.folder, ranks)


def rows(runs):
    measures = measure(grouped(runs))
    (series,) = series_of(measures.groups)
    return by_node(series, measures)


def test_one_full_node_is_the_unit():
    rates = {1: 100, 2: 190, 4: 360, 8: 612, 16: 1080}
    found = rows([on_nodes(made.run("horovod", n, throughput=float(rate)), 4) for n, rate in rates.items()])
    assert [(row.nodes, row.workers) for row in found] == [(1, 4), (2, 8), (4, 16)]
    assert [row.speedup.value for row in found] == pytest.approx([1.0, 1.7, 3.0])
    assert [row.efficiency.value for row in found] == pytest.approx([1.0, 0.85, 0.75])


def test_counts_that_do_not_fill_their_nodes_are_left_out():
    found = rows([on_nodes(made.run("horovod", n), 4) for n in (1, 4, 6, 8)])
    assert [row.workers for row in found] == [4, 8]


def test_on_one_node_there_is_nothing_to_say():
    assert rows([on_nodes(made.run("horovod", n), 8) for n in (1, 2, 4, 8)]) == ()


def test_where_nodes_were_not_recorded_there_is_nothing_to_say():
    assert rows([made.run("horovod", n) for n in (1, 2, 4)]) == ()
