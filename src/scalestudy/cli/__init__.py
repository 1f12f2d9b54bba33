"""The command line: parse, call, print."""

# Commands import what takes long where they need it, so that --help and completion load nothing heavy.
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Annotated, Any

import typer

from scalestudy.cli import (
    advice_commands,
    machine_commands,
    model_commands,
    report_commands,
    run_commands,
    study_commands,
)
from scalestudy.cli.help import OVERVIEW, CommandGroup, StrictCommand, epilog
from scalestudy.cli.options import option
from scalestudy.util.errors import explain

INTERRUPTED = 130
"""Exit code of Typer after a KeyboardInterrupt."""
GROUPS = {
    "Study": ("demo", "init", "run", "submit", "recipe", "status", "logs", "cancel"),
    "Results": ("report", "advise", "diagnose", "proposal", "compare", "export"),
    "Models and data": ("model", "data", "launch"),
    "Machine": ("check", "site", "docs"),
}
"""Groups of commands in `--help`."""
COMMANDS: dict[str, Callable[..., None]] = {
    "demo": report_commands.demo_command,
    "init": study_commands.init_command,
    "run": run_commands.run_study_command,
    "submit": run_commands.submit_command,
    "status": study_commands.status_command,
    "cancel": study_commands.cancel_command,
    "report": report_commands.report_command,
    "advise": advice_commands.advise_command,
    "diagnose": advice_commands.diagnose_command,
    "proposal": advice_commands.proposal_command,
    "compare": report_commands.compare_command,
    "export": report_commands.export_command,
    "recipe": advice_commands.recipe_command,
    "check": machine_commands.check_command,
    "docs": machine_commands.docs_command,
}
NAMED = {
    "model": model_commands.model_app,
    "data": model_commands.data_app,
    "site": machine_commands.site_app,
}


class _MainGroup(CommandGroup):
    headings = GROUPS


app = typer.Typer(
    name="scalestudy",
    cls=_MainGroup,
    help="Train one Keras or PyTorch model on many workers, and measure what each added worker gains.",
    epilog=OVERVIEW,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    # Errors are ours; see `main`.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, command in COMMANDS.items():
    app.command(name)(command)
# Further words are refused in the command, with the option that was probably meant.
app.command("logs", context_settings={"allow_extra_args": True})(
    study_commands.logs_command
)
# What follows the script is the script's own, options included.
app.command("launch", context_settings={"allow_interspersed_args": False})(
    run_commands.launch_command
)
for name, group in NAMED.items():
    app.add_typer(group, name=name)
groups = {"": app}
for name, group in NAMED.items():
    groups[f"{name} "] = group
# Here, for all at once: a command that forgot it would accept empty values and show no examples.
for prefix, group in groups.items():
    for entry in group.registered_commands:
        entry.epilog = epilog(f"{prefix}{entry.name}")
        entry.cls = StrictCommand


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, option("Print the version.", name="--version")] = False,
) -> None:
    if version:
        from scalestudy.util.own_package import version as installed

        print(f"scalestudy {installed()}")
        raise typer.Exit


@cache
def _command_line() -> Any:
    """All commands with their options; made once, since Python may call `main` often."""
    # Typer reads the signatures of all commands for it.
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Exit codes: 0 done, 1 a run failed, 2 wrong input, 70 a bug in Scalestudy, 130 interrupted
    by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
    """
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        # Names of files may contain bytes that are no text. A notebook replaces the streams.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Not standalone: click would print errors in its own words, and exit.
        code = _command_line().main(arguments, standalone_mode=False) or 0
        # While an error can still be told.
        sys.stdout.flush()
        sys.exit(_of_signal(code))
    except KeyboardInterrupt:
        sys.exit(_of_signal(INTERRUPTED))
    except BrokenPipeError:
        # As of `scalestudy report | head`.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (Python flushes it at exit)
        sys.exit(1)
    except Exception as error:
        from scalestudy.cli.printing import bug_of, print_error, usage_error

        known = explain(error) or usage_error(error) or bug_of(error)
        # Standard error may be a full disk.
        with suppress(OSError):
            print_error(known)
        sys.exit(known.exit_code)


def _of_signal(code: int) -> int:
    """The exit code, with that of the signal where runs have handled another than Ctrl-C."""
    if code != INTERRUPTED:
        return code
    # Commands that start no runs have not imported it, and handle no signals.
    stop_signal = sys.modules.get("scalestudy.launch.stop_signal")
    if stop_signal is None:
        return code
    received: int = stop_signal.exit_code()
    return received


def _open_missing_streams() -> None:
    """Open the null device for standard streams that the caller has closed (`>&-`, some cron daemons).

    Otherwise the first files that are opened take their numbers, and what children print goes into these.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115 (takes the lowest free number, which is its own)
            # Python's own files are not: children would find the number free.
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
