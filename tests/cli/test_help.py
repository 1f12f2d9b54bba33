"""The `--help` text of each command."""

import re
import shlex

import pytest
import typer

from scalestudy.cli import app, main

GROUPS = ("model", "data", "site")


def commands() -> dict[str, typer.core.TyperCommand]:
    top = typer.main.get_command(app).commands
    inner = {
        f"{group} {name}": command
        for group in GROUPS
        for name, command in top[group].commands.items()
    }
    return {
        name: command for name, command in top.items() if name not in GROUPS
    } | inner


def options(command: typer.core.TyperCommand) -> set[str]:
    return {
        option
        for parameter in command.params
        for option in [*parameter.opts, *parameter.secondary_opts]
    }


@pytest.mark.parametrize("name", commands())
def test_every_command_shows_an_example_that_it_takes(name: str) -> None:
    command = commands()[name]
    lines = [
        line.strip()
        for line in (command.epilog or "").splitlines()
        if f"scalestudy {name}" in line
    ]
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)
        used = {word for word in words if word.startswith("-")}
        known = options(command) | ({"--epochs"} if name == "launch" else set())
        assert used <= known, line


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_summaries_are_not_cut(call, group: str) -> None:
    code, text, _ = call(*group.split(), "--help")
    assert code == 0
    assert not re.search(r"\w\.\.\.$", text, re.MULTILINE)


def test_one_option_has_one_name_and_one_metavar() -> None:
    """`--workers` is `-n` and a point is `--point` in all commands; all take results by the same argument."""
    for name, command in commands().items():
        for parameter in command.params:
            if "--workers" in parameter.opts and name not in (
                "advise",
                "proposal",
                "report",
            ):
                assert "-n" in parameter.opts, name
            files = ("run", "submit", "recipe", "model predict")
            if parameter.name in ("study", "model") and name not in files:
                assert parameter.metavar == "STUDY" and not parameter.required, name
            if parameter.name in ("point", "points"):
                assert "--point" in parameter.opts and parameter.metavar == "POINT", (
                    name
                )


@pytest.mark.parametrize("name", commands())
def test_help_shows_no_types_or_ranges_of_python(call, name: str) -> None:
    text = " ".join(call(*name.split(), "--help")[1].partition("Examples:")[0].split())
    assert not re.search(r"<|x>=|<=x|\[\[|list\[|int range", text)
    usage = re.match(r"Usage: .*? \[OPTIONS\]((?: \S+)*?) [A-Z][a-z]", text)
    assert usage is None or usage[1] == usage[1].upper()


def test_ranges_are_words(call) -> None:
    text = " ".join(call("recipe", "--help")[1].split())
    assert "2 to 1000" in text
    assert "above 0" in " ".join(call("proposal", "--help")[1].split())
    assert "at least 1" in " ".join(call("check", "--help")[1].split())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("scalestudy rec", ["recipe"]),
        ("scalestudy model ev", ["evaluate"]),
        ("scalestudy report --ver", ["--verbose"]),
    ],
)
def test_a_shell_completes_commands_and_options(
    capsys, monkeypatch, words: str, found: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["scalestudy"])
    monkeypatch.setattr("__main__.__package__", None)  # as in the installed program
    monkeypatch.setenv("_SCALESTUDY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit) as caught:
        main([])
    assert not caught.value.code
    assert capsys.readouterr().out.split() == found
