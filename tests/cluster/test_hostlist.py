import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.cluster.slurm_lists import expand_hosts, tasks_per_node
from scalestudy.util.errors import UserError


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n[1-2,05-07]-ib", ["n1-ib", "n2-ib", "n05-ib", "n06-ib", "n07-ib"]),
        ("rack[0-1]n[1-2]", ["rack0n1", "rack0n2", "rack1n1", "rack1n2"]),
        (
            "a[1-2]b[3-4]c[5,6]",
            [
                "a1b3c5",
                "a1b3c6",
                "a2b3c5",
                "a2b3c6",
                "a1b4c5",
                "a1b4c6",
                "a2b4c5",
                "a2b4c6",
            ],
        ),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n10,n2,n10", ["n10", "n2", "n10"]),
        (
            "node[1-14]",
            [f"node{number}" for number in range(1, 15)],
        ),  # not sorted as text
        ("gpu-3.site.org", ["gpu-3.site.org"]),
        (",a,,b,", ["a", "b"]),
        ("", []),
    ],
)
def test_a_short_form_is_written_out_in_its_order(text, hosts):
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize(
    "text", ["n[1-2", "n1]", "n[]", "n[a]", "n[3-1]", "n[[1-2]]", "(null)", "n[1]$(x)"]
)
def test_a_malformed_list_is_refused_as_received(text):
    with pytest.raises(UserError) as error:
        expand_hosts(text)
    assert text in error.value.received


bounds = st.tuples(st.integers(0, 120), st.integers(0, 4), st.integers(1, 4)).map(
    lambda value: (value[0], value[0] + value[1], value[2])
)
words = st.from_regex(r"[abz][abz-]{0,2}", fullmatch=True)


def written(brackets: list[tuple[int, int, int]]) -> str:
    parts = [
        str(low).zfill(width) + (f"-{str(high).zfill(width)}" if high > low else "")
        for low, high, width in brackets
    ]
    return ",".join(parts)


def meant(brackets: list[tuple[int, int, int]]) -> list[str]:
    return [
        str(number).zfill(width)
        for low, high, width in brackets
        for number in range(low, high + 1)
    ]


@given(
    st.lists(
        st.tuples(words, st.lists(bounds, min_size=1, max_size=3), words),
        min_size=1,
        max_size=5,
    )
)
def test_any_list_of_ranges_is_written_out_in_order_with_its_widths(elements):
    text = ",".join(
        f"{prefix}[{written(inner)}]{suffix}" for prefix, inner, suffix in elements
    )
    hosts = [
        f"{prefix}{number}{suffix}"
        for prefix, inner, suffix in elements
        for number in meant(inner)
    ]
    assert expand_hosts(text) == hosts


@given(st.text(max_size=30))
def test_any_text_is_a_list_or_is_refused(text):
    try:
        hosts = expand_hosts(text)
    except UserError:
        return
    assert all(host and host.strip() == host for host in hosts)
    assert expand_hosts(",".join(hosts)) == hosts


@pytest.fixture(scope="module")
def scontrol(tmp_path_factory):
    """Slurm's own expansion of host lists; it needs a configuration but no running cluster."""
    program = shutil.which("scontrol")
    if program is None:
        pytest.skip("no scontrol on this machine (Debian: slurm-client)")
    conf = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    conf.write_text("ClusterName=none\nSlurmctldHost=localhost\n")

    def hostnames(text: str) -> list[str]:
        done = subprocess.run(
            [program, "show", "hostnames", text],
            env=os.environ | {"SLURM_CONF": str(conf)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return hostnames


def several(prefix: str, brackets: list[list[tuple[int, int, int]]]) -> str:
    return prefix + "x".join(f"[{written(inner)}]" for inner in brackets)


slurm_elements = st.one_of(
    st.builds(
        several,
        words,
        st.lists(st.lists(bounds, min_size=1, max_size=3), min_size=1, max_size=3),
    ),
    st.builds(lambda word, number: f"{word}{number}", words, st.integers(0, 99)),
)


@settings(max_examples=40)
@given(st.lists(slurm_elements, min_size=1, max_size=4).map(",".join))
def test_slurm_writes_out_the_same(scontrol, text):
    assert expand_hosts(text) == scontrol(text)


@pytest.mark.parametrize(
    ("text", "counts"),
    [("2(x3),1", [2, 2, 2, 1]), ("4", [4]), ("1,2(x2),1", [1, 2, 2, 1])],
)
def test_task_counts_are_written_out(text, counts):
    assert tasks_per_node(text) == counts


@pytest.mark.parametrize("text", ["", "2(x0)", "x", "2(x3),", "-1", "2x3"])
def test_malformed_task_counts_are_refused(text):
    with pytest.raises(UserError, match="tasks per node"):
        tasks_per_node(text)
