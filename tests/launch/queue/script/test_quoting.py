"""Whatever a text holds, bash takes it for what it is."""

import os
import re
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scalestudy.launch.queue.script import directive, expandable, job_name, literal, one_line

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/people/of me",
    "A_1": 'a "b" $HOME `c` \\',
    "LC_ALL": "C.UTF-8",
}
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
NASTY = st.text(st.sampled_from("a1 '\"$`\\{}!#~*?[]()<>|&;\n\t\r%é€𝄞-=\1\x7f"), max_size=20)


def seen_by_bash(*words: str) -> list[bytes]:
    """What becomes of words, as arguments and in an array, which bash reads each in its own way."""
    script = "printf '%s\\0' {0}; words=({0}); printf '%s\\0' \"${{words[@]}}\"".format(" ".join(words))
    done = subprocess.run(
        ["bash", "-c", os.fsencode(script)], env=ENVIRONMENT, capture_output=True, check=True
    )
    assert done.stderr == b""
    seen = done.stdout.split(b"\0")[:-1]
    assert seen[: len(words)] == seen[len(words) :]
    return seen[: len(words)]


@settings(deadline=None, max_examples=60)
@given(st.lists(TEXTS | NASTY, min_size=1, max_size=20))
@example(["", "-n", "a\nb", "$HOME", "`id`", "!!", "it's", "\\", "$(id)", "$'x'", '"'])
@example(["$\x7f", "\1`", "\x7f$$HOME"])
def test_a_literal_is_what_it_was(texts):
    assert seen_by_bash(*map(literal, texts)) == [text.encode() for text in texts]


@given(st.binary(min_size=1, max_size=20).filter(lambda data: 0 not in data))
@settings(deadline=None, max_examples=30)
@example(b"caf\xe9 $HOME 'x' \\ \n")
def test_a_path_that_is_no_text_is_what_it_was(data):
    assert seen_by_bash(literal(os.fsdecode(data))) == [data]


def expected(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else ENVIRONMENT.get(match[1] or match[2], "")

    return re.sub(r"\$\$|\$([A-Za-z_][A-Za-z0-9_]*)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}", value, text)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        NASTY
        | st.lists(
            st.sampled_from(["$HOME", "${A_1}", "$A_1", "$$", "$NOT_SET", "$1", "$(id)", "'", " "])
        ).map("".join),
        min_size=1,
        max_size=20,
    )
)
@example(["$HOME\x7f", "\1\x7f${A_1}`\1", "$\x7f"])
@example(["$HOME/x y", "${HOME}a", "$$HOME", "$", "a$", "$A_1", "$$$A_1", "`id`$HOME", "${HOME"])
def test_variables_are_put_in_and_nothing_is_run(texts):
    assert seen_by_bash(*map(expandable, texts)) == [expected(text).encode() for text in texts]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/plain/path-1", "/plain/path-1"),
        ("/a b", "'/a b'"),
        ("/a$b", '"/a\\$b"'),
        ("$SCRATCH/x", '"$SCRATCH/x"'),
    ],
)
def test_words_stay_readable(text, word):
    assert (expandable(text) if text.startswith("$") else literal(text)) == word


@given(TEXTS)
def test_a_job_name_is_plain_and_never_empty(text):
    assert re.fullmatch(r"[A-Za-z0-9._=+-][A-Za-z0-9._=+_-]{0,59}", job_name(text))


@given(TEXTS)
def test_a_comment_stays_on_its_line(text):
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("--nodes=2", "--nodes=2"),
        ("--exclusive", "--exclusive"),
        ("--constraint=[a|b]&c", "--constraint=[a|b]&c"),
        ("--comment=two words", '--comment="two words"'),
        ('--comment=a "b" # c', '--comment="a \\"b\\" # c"'),
    ],
)
def test_directives_are_quoted_where_sbatch_would_split_them(option, written):
    assert directive(option) == written
