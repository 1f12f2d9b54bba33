"""Additions to Typer's commands: examples in `--help`, summaries that are not truncated, no empty values."""

import difflib
import re
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from scalestudy.cli.printing import command_words
from scalestudy.util.errors import UserError

# \b keeps the line breaks.
OVERVIEW = """\b
Examples:
  See a report, without training anything:
    scalestudy demo
  Run a first study:
    scalestudy init study.toml && scalestudy run study.toml
  Watch it from another terminal:
    scalestudy status studies/study --live
  Run it through Slurm, with launch.on = "slurm" in the file:
    scalestudy submit study.toml && scalestudy status studies/study --live
  Apply its best model to other images:
    scalestudy model predict studies/study images/ --out predictions
"""
EXAMPLES = """\
scalestudy demo                              # prints the decision, writes published-unet.html
scalestudy init                              # study.toml, for this machine
scalestudy init mine.toml --task my_task.py  # for your own model
scalestudy run study.toml --dry-run          # list its points and their predicted time
scalestudy run study.toml
scalestudy submit study.toml --dry-run       # print the job scripts
scalestudy submit study.toml --at-most 10
scalestudy status                            # the newest study here
scalestudy status study.toml --live
scalestudy status study.toml --state failed --point 'horovod-*'
scalestudy logs study.toml --follow          # the run in progress
scalestudy logs study.toml --point horovod-w4-s0 --rank 3
scalestudy cancel study.toml --point 'horovod-*'
scalestudy report                            # the decision for the newest study here
scalestudy report study.toml --out table.csv
scalestudy report --from measured.csv --out report.html
scalestudy report study.toml --share ours.json # without names, for others
scalestudy advise study.toml                 # what the report advises
scalestudy advise --deadline 2h              # the cheapest training that ends in time
scalestudy diagnose                          # the point after the advised one
scalestudy diagnose study.toml --point horovod-w4-s0 --rounds 5
scalestudy recipe study.toml --workers 8,14  # on one device, with virtual workers
scalestudy recipe study.toml --dry-run       # how much it trains
scalestudy proposal --list                   # list the review panels
scalestudy proposal --panel csc --out proposal.md
scalestudy compare studies/unet /scratch/unet --out sites.html
scalestudy compare theirs.json studies/unet  # a file of `report --share`
scalestudy export study.toml --to tensorboard --out logs
scalestudy export study.toml --to mlflow --out https://mlflow.example.org
scalestudy launch -n 4 train.py --epochs 10
scalestudy check study.toml                  # starts real processes for a local study
scalestudy check study.toml --submit         # also runs a short job on the nodes
scalestudy check --strategies                # what can be used here
scalestudy docs                              # list the pages of the manual
scalestudy docs guides/how-many-gpus
scalestudy model predict studies/study images/ --out predictions --overlay
scalestudy model evaluate study.toml --data other/images --split all
scalestudy model samples study.toml --point horovod-w2-s0 --out samples.html
scalestudy model export study.toml --out model.onnx
scalestudy data show path/to/images --out data.html
scalestudy data prepare study.toml          # for jobs without a network
scalestudy site init --out my-site.toml
"""
KINDS = {
    "str": "TEXT",
    "path": "PATH",
    "int": "N",
    "int range": "N",
    "float": "X",
    "float range": "X",
}
"""Words for the types of values whose options have none of their own."""
# Options whose value is above 0 have min=1e-09.
RANGES = (
    (re.compile(r"\bx>=1e-09\b"), "above 0"),
    (re.compile(r"\bx>=(\S+?)(?=[];])"), r"at least \1"),
    (re.compile(r"([^\s;[]+)<=x<=([^\s;]+?)(?=[];])"), r"\1 to \2"),
)
"""Ranges of numbers as Typer writes them, and as words."""


def epilog(command: str) -> str:
    """Examples of a command, shown below its options."""
    lines = []
    for line in EXAMPLES.splitlines():
        if f"{line} ".startswith(f"scalestudy {command} "):
            lines.append(line)
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class StrictCommand(TyperCommand):
    """Refuses empty values, which an unset variable of a shell script gives.

    A path of no characters would be the working folder; other values would reach code that expects text.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            UserError: One is empty, and is not an argument for a user's own script.
        """
        # A copy, since the parser takes words off the list.
        given, further, _ = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in self.params:
            name = parameter.opts[0]
            # An argument.
            if not name.startswith("-"):
                name = parameter.metavar or name.upper()
            of_script = parameter.nargs == -1 and not ctx.allow_interspersed_args
            if not of_script:
                _refuse_empty(given.get(parameter.name), name)
        _refuse_empty(further, "every argument")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Words of the usage: optional ones in brackets, the names of arguments in capitals."""
        pieces = []
        for piece in super().collect_usage_pieces(ctx):
            word = re.sub(r"[{}]", "", piece)
            if word != "[OPTIONS]":
                word = word.upper()
            pieces.append(word)
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of arguments and options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            rows = help_records(self, ctx, kind)
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def help_records(command: Any, ctx: Any, kind: str) -> list[tuple[str, str]]:
    """The "argument"s or "option"s of a command, each as written and with its help, in words."""
    records = []
    for parameter in command.get_params(ctx):
        if parameter.param_type_name != kind:
            continue
        record = parameter.get_help_record(ctx)
        # Hidden options have none.
        if record:
            spec, text = record
            records.append((_spec(spec, kind), _words(text)))
    return records


def _spec(spec: str, kind: str) -> str:
    if kind == "argument":
        return re.sub(r" <.*>", "", spec).strip("[]").upper()
    return re.sub(r"<([^>]*)>", lambda match: KINDS.get(match[1], match[1]), spec)


def _words(text: str) -> str:
    for pattern, words in RANGES:
        text = pattern.sub(words, text)
    return text


def _refuse_empty(given: Any, name: str) -> None:
    values = [given]
    if isinstance(given, list | tuple):
        values = list(given)
    if "" in values:
        raise UserError(
            f"a value for {name}",
            'an empty one: ""',
            "Write it out, or leave it out. In a shell script, a variable may be unset.",
        )


class CommandGroup(TyperGroup):
    """Lists commands with their full summaries, under headings if there are any.

    An unknown command is refused with the nearest one.
    """

    headings: ClassVar[dict[str, tuple[str, ...]]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse them; without any, show the help and end."""
        # A shell that completes a word asks for what follows no argument, too.
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names."""
        word = args[0]
        if word not in self.commands and not word.startswith("-"):
            from scalestudy.config.removed import what_instead

            near = difflib.get_close_matches(word, self.commands, 1)
            see = f"See {ctx.command_path} --help"
            action = see
            if near:
                action = f"Did you mean {near[0]}? {see}"
            command = f"{command_words(ctx)} {word}".strip()
            action = what_instead("commands", command) or action
            raise UserError(f"a command of `{ctx.command_path}`", word, action)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        headings = self.headings or {"Commands": tuple(self.commands)}
        for title, names in headings.items():
            rows = []
            for name in names:
                # By default, Click truncates summaries at 45 characters.
                summary = self.commands[name].get_short_help_str(limit=300)
                rows.append((name, summary))
            with formatter.section(title):
                formatter.write_dl(rows)
