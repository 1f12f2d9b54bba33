"""Options of all commands that use a trained model."""

from typing import Annotated

import typer

Point = Annotated[
    str | None, typer.Option(help="Point of the study, instead of its best run.", metavar="NAME")
]
Weights = Annotated[str, typer.Option(help="Of the last or the best epoch.", metavar="last|best")]
Device = Annotated[str, typer.Option(help="auto takes GPUs where there are any.", metavar="auto|cpu|gpu")]
