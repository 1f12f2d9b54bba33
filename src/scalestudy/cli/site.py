"""`scalestudy site`: write and list site profiles."""

from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.console import err, out, write_new
from scalestudy.cli.help import CommandGroup
from scalestudy.cli.options import ForceOption
from scalestudy.util.errors import UserError

app = typer.Typer(cls=CommandGroup, help="Describe a cluster once, in a site profile.", no_args_is_help=True)


@app.command("init")
def init(
    name: Annotated[
        str | None, typer.Argument(help="Name of the profile.", show_default="that of the cluster")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File to write.", metavar="FILE", show_default="NAME.toml among your site profiles"
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a commented site profile, filled in with what Slurm reports."""
    import re

    from scalestudy.launch.queue.site import load_site, sites_folder
    from scalestudy.launch.site_init import ask_site, site_template

    if name is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise UserError("a name of letters, digits, . - and _", repr(name), "Choose another name.")
    slurm = ask_site()
    path = file or sites_folder() / f"{name or slurm.cluster or 'my-site'}.toml"
    write_new(path, site_template(slurm.values), force=force)
    load_site(path)
    if slurm.error is not None:
        words = f"Slurm did not answer ({slurm.error.received}): fill in the profile by hand."
        err().print(words, markup=False)
    if len(slurm.gpu_kinds) > 1:
        kinds = ", ".join(f"{count} nodes with {kind}" for kind, count in slurm.gpu_kinds.items())
        words = "Name one kind in gpu_request or constraint: times of different GPUs cannot be compared."
        err().print(f"The partition {slurm.values['partition']} has {kinds}. {words}", markup=False)
    out().print(
        f"Wrote {path}. Check its values, then: scalestudy check {path if file else path.stem}", markup=False
    )


@app.command("list")
def show_all() -> None:
    """List your site profiles."""
    from scalestudy.launch.queue.site import known_sites, load_site, sites_folder

    names = known_sites()
    if not names:
        out().print(
            f"No site profile in {sites_folder()}. Write one with: scalestudy site init", markup=False
        )
    for name in names:
        try:
            site = load_site(sites_folder() / f"{name}.toml")
        except UserError as error:
            text = f"invalid: {error.received}"
        else:
            gpus = f"{site.gpus_per_node} GPUs, " if site.gpus_per_node else ""
            text = f"{site.partition or 'default partition'}, {gpus}{site.cpus_per_node} cores a node"
        out().print(f"{name}  {text}", markup=False)
