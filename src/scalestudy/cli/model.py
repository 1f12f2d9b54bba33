"""`scalestudy model`: what a trained model is used for."""

import typer

from scalestudy.cli import evaluate, export, predict, samples

app = typer.Typer(
    help="Use a trained model: predict, evaluate, look at samples, export.", no_args_is_help=True
)
app.command("predict")(predict.predict)
app.command("evaluate")(evaluate.evaluate)
app.command("samples")(samples.samples)
app.command("export")(export.export)
