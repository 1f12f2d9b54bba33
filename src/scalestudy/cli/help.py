"""What `--help` shows beside the options: an example for every command, and summaries that are not cut."""

from typing import Any, ClassVar

from typer.core import TyperGroup

# \b keeps the lines as they are.
OVERVIEW = """\b
Examples:
  What a report looks like, without training anything:
    scalestudy demo
  A first study, start to report:
    scalestudy init study.toml && scalestudy run study.toml
  How far it is, from another terminal:
    scalestudy status studies/study --live
  The same through Slurm, with launch.on = "slurm" in the file:
    scalestudy submit study.toml && scalestudy status studies/study --live
  What its best model says of other images:
    scalestudy model predict studies/study images/ --out predictions
  One run, without a study file:
    scalestudy train --task cnn --data digits --strategy horovod --workers 2
"""
EXAMPLES = {
    "demo": (
        "scalestudy demo                              # prints the decision, writes published-unet.html",
    ),
    "init": (
        "scalestudy init                              # study.toml, for this machine",
        "scalestudy init mine.toml --task my_task.py  # for a model of your own",
    ),
    "run": (
        "scalestudy run study.toml --dry-run          # its points, and how long they will take",
        "scalestudy run study.toml",
    ),
    "submit": (
        "scalestudy submit study.toml --dry-run       # the job scripts",
        "scalestudy submit study.toml --at-most 10",
    ),
    "status": (
        "scalestudy status                            # of the newest study here",
        "scalestudy status study.toml --live",
        "scalestudy status study.toml --state failed --point 'horovod-*'",
    ),
    "logs": (
        "scalestudy logs study.toml --follow          # of the run under way",
        "scalestudy logs study.toml --point horovod-w4-s0 --rank 3",
    ),
    "cancel": ("scalestudy cancel study.toml --point 'horovod-*'",),
    "train": ("scalestudy train --task cnn --data digits --strategy horovod -n 2 --epochs 5",),
    "report": (
        "scalestudy report                            # the decision of the newest study here",
        "scalestudy report study.toml --out table.csv",
        "scalestudy report --from measured.csv --out report.html",
        "scalestudy report study.toml --share ours.json # one file for others, without names",
    ),
    "advise": (
        "scalestudy advise study.toml                 # what the report advises",
        "scalestudy advise --deadline 2h              # the cheapest training that is done in time",
        'scalestudy advise --network "100Gbit,2us,per_node=4"  # larger runs than were measured',
    ),
    "diagnose": (
        "scalestudy diagnose                          # the point that the decision depends on",
        "scalestudy diagnose study.toml --point horovod-w4-s0 --rounds 5",
    ),
    "proposal": (
        "scalestudy proposal --list                   # the panels there are",
        "scalestudy proposal --panel csc --out proposal.md",
    ),
    "compare": (
        "scalestudy compare here=studies/unet there=/scratch/unet --out sites.html",
        "scalestudy compare before=old/digits after=studies/digits --fail-if-slower 5%  # in a pipeline",
        "scalestudy compare theirs.json studies/unet  # theirs: what `report --share` wrote",
    ),
    "launch": (
        "scalestudy launch -n 4 --strategy horovod train.py --epochs 10",
        "scalestudy launch -n 2 --strategy multiworker --dry-run train.py",
        "python train.py                              # one worker, plain Keras",
    ),
    "check": (
        "scalestudy check study.toml                  # with real processes for a local study",
        "scalestudy check study.toml --submit         # then a short job on the nodes",
        "scalestudy check --topology                  # this node's links and measured bandwidth",
    ),
    "model predict": ("scalestudy model predict studies/study images/ --out predictions --overlay",),
    "model evaluate": ("scalestudy model evaluate study.toml --data other/images --split all",),
    "model samples": ("scalestudy model samples study.toml --point horovod-w2-s0 --out samples.html",),
    "model export": ("scalestudy model export study.toml --out model.onnx --format onnx",),
    "data show": ("scalestudy data show path/to/images --out data.html",),
    "data prepare": ("scalestudy data prepare study.toml          # before jobs without a network",),
    "site init": ("scalestudy site init --out my-site.toml",),
    "site list": ("scalestudy site list",),
}
"""Command lines by command."""


def epilog(command: str) -> str:
    """The examples of a command, below its options."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[command])


class CommandGroup(TyperGroup):
    """Lists commands with their whole summaries, under headings where there are some."""

    headings: ClassVar[dict[str, tuple[str, ...]]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list."""
        for title, names in (self.headings or {"Commands": tuple(self.commands)}).items():
            rows = [(name, self.commands[name].get_short_help_str(limit=300)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)
