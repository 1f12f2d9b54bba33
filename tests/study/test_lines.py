import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.study.lines import line_numbers

WORDS = st.text("abX_-1", min_size=1, max_size=4)
SCALARS = st.one_of(
    st.integers(-999, 999).map(str),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda value: repr(float(value))),
    st.booleans().map(lambda value: str(value).lower()),
    st.sampled_from(["1979-05-27T07:32:00Z", "'raw # ] text'", '"""two\n# "lines" ]"""', "'''x\n'y' '''"]),
    st.sampled_from(['"a \\" # b"', '"[x]"', '"]"', '"\\\\"']),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[ # why\n" + ",\n".join(items) + "\n]"),
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
        st.dictionaries(WORDS, inner, max_size=3).map(
            lambda table: "{ " + ", ".join(f"{key} = {value}" for key, value in table.items()) + " }"
        ),
    ),
    max_leaves=6,
)
TABLES = st.dictionaries(WORDS, VALUES, max_size=4)


def document(tables: dict[str, dict[str, str]], comment: str) -> str:
    parts = []
    for name, table in tables.items():
        parts.append(f"{comment}\n[ {name} ] # {name}\n")
        parts += [f"  {key}  = {value} # {key}\n" for key, value in table.items()]
    return "".join(parts)


def paths(value: Any, at: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    found = {at} if at else set()
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        found |= paths(inner, (*at, key))
    return found


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(WORDS, TABLES, max_size=3))
def test_every_key_and_item_of_any_document_has_a_line(tables: dict[str, dict[str, str]]) -> None:
    text = document(tables, "# comment with = and [brackets]")
    assert set(line_numbers(text)) == paths(tomllib.loads(text))


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(WORDS, TABLES, min_size=1, max_size=3), st.integers(0, 5))
def test_a_key_stands_on_the_line_that_names_it(tables: dict[str, dict[str, str]], blank: int) -> None:
    text = "\n" * blank + document(tables, "")
    rows = text.split("\n")
    for path, line in line_numbers(text).items():
        if len(path) == 2:
            assert rows[line - 1].startswith(f"  {path[1]}  =")


def test_dotted_quoted_and_nested_keys_have_the_line_they_were_written_on() -> None:
    text = '\n"a.b" = 1\na.c = [\n  1,\n  2]\n[x . "y z"]\nk = { q = [3] }\n[[t]]\n[[t]]\nu = 1\n[t.v]\n'
    lines = line_numbers(text)
    assert lines[("a.b",)] == 2
    assert lines[("a", "c")] == 3
    assert (lines[("a", "c", 0)], lines[("a", "c", 1)]) == (4, 5)
    assert lines[("x", "y z", "k", "q", 0)] == 7
    assert (lines[("t", 0)], lines[("t", 1)], lines[("t", 1, "u")], lines[("t", 1, "v")]) == (8, 9, 10, 11)


def test_windows_line_ends_count_once() -> None:
    assert line_numbers("a = 1\r\n\r\n[b]\r\nc = 2 # x\r\n")[("b", "c")] == 4
