"""The output of the terminal listener without a terminal."""

from scalestudy.cli.terminal_listener import Terminal


def test_bars_leave_nothing_in_a_log(capsys):
    terminal = Terminal()
    with terminal.progress("Predicting", 2) as on_progress:
        on_progress(2)
    with terminal.progress("Fetching weights", unit="bytes") as on_bytes:
        on_bytes(1, None)
    assert capsys.readouterr().err == ""
