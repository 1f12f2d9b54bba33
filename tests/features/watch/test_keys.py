from scalestudy.features.watch.keys import names


def test_keys_are_named_whatever_the_terminal_sends_for_them():
    assert list(names(b"\x1b[A\x1bOBq\tl\x1b[Z")) == ["up", "down", "q", "tab", "l", "back tab"]


def test_keys_that_are_not_known_are_passed_over_whole():
    assert list(names(b"\x1b[1;5Cs\x1b[15~\x1b")) == ["s"]
