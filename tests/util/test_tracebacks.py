import json
import subprocess
import sys

import pytest

from scalestudy.util.tracebacks import (
    Frame,
    crashed_at,
    error_text,
    locate_error,
    raised_at,
    user_frame,
)


def test_the_innermost_place_in_a_file_of_the_users_is_named(tmp_path):
    frames = [
        Frame(str(tmp_path / "task.py"), 3, "model"),
        Frame(str(tmp_path / "__autograph_generated_file1.py"), 8, "tf__call"),
        Frame(json.__file__, 9, "loads"),
        Frame("<frozen importlib._bootstrap>", 1, "f"),
    ]
    assert user_frame(frames) == "task.py, line 3, in model"
    assert user_frame(frames[1:]) == ""


def test_a_place_outside_of_functions_has_a_line_alone(tmp_path):
    assert (
        user_frame([Frame(str(tmp_path / "task.py"), 3, "<module>")])
        == "task.py, line 3"
    )


def test_our_own_files_are_not_the_users():
    with pytest.raises(TypeError) as caught:
        user_frame(1)  # type: ignore[arg-type]
    assert [frame.name for frame in raised_at(caught.tb)][-1] == "user_frame"
    assert "test_tracebacks.py" in locate_error(caught.value)


def test_an_exception_is_told_in_one_line_with_its_place():
    with pytest.raises(ValueError, match="Graph") as caught:
        raise ValueError("Graph execution error:\n\nno such kernel\nat node 3")
    said = locate_error(caught.value)
    assert said.startswith(
        "ValueError: Graph execution error: no such kernel (test_tracebacks.py, line "
    )


def test_what_python_writes_on_a_crash_is_read_from_the_inside_out(tmp_path):
    file = tmp_path / "crash.py"
    file.write_text("import ctypes\ndef inner():\n    ctypes.string_at(0)\ninner()\n")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", file],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    found = crashed_at(done.stderr)
    assert [frame.name for frame in found] == ["<module>", "inner", "string_at"]
    assert user_frame(found) == "crash.py, line 3, in inner"


TRACED = """Graph execution error:

Detected at node dense/MatMul defined at (most recent call last):
  File "task.py", line 7, in model

Detected at node zeros defined at (most recent call last):
<stack traces unavailable>
"""
OOM = "OOM when allocating tensor with shape[64,512,512] and type float on GPU:0 by allocator GPU_0_bfc"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (f"{TRACED}{OOM}\n\t [[{{{{node zeros}}}}]]\nHint: none", OOM),
        (
            f"{TRACED}2 root error(s) found.\n  (0) RESOURCE_EXHAUSTED: {OOM}\n  (1) CANCELLED: x",
            f"2 root error(s) found. (0) RESOURCE_EXHAUSTED: {OOM}",
        ),
        (f"Graph execution error:\n\n{OOM}", OOM),
    ],
)
def test_an_error_in_a_compiled_function_is_told_by_what_it_says_and_not_by_where_it_was_traced(
    message, said
):
    assert (
        error_text(MemoryError(message))
        == f"MemoryError: Graph execution error: {said}"
    )


def test_an_error_that_only_says_where_it_was_traced_is_told_by_that():
    assert error_text(ValueError(TRACED)).startswith(
        "ValueError: Graph execution error: Detected at node dense"
    )


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("\x1b[2Jcleared\udcff"), "ValueError: \\x1b[2Jcleared\\udcff"),
        (SystemExit("a\x07"), r"sys.exit('a\x07')"),
        (SystemExit(None), "sys.exit()"),
        (SystemExit(ValueError("x")), "sys.exit(x)"),
        (Mute(), "Mute"),
        (ValueError("long " * 1000), "ValueError: " + ("long " * 1000)[:500]),
        (ValueError("\n\n"), "ValueError"),
    ],
)
def test_whatever_it_says_it_is_told_in_one_line_that_terminals_and_files_can_hold(
    error, said
):
    assert error_text(error) == said
    assert error_text(error).encode()
