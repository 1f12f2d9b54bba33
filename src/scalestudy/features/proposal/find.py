"""Panels by name: those that come with the package, the user's own, and a file anywhere."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from scalestudy.features.proposal.panel import Panel, parse_panel, read_panel
from scalestudy.features.proposal.vocabulary import vocabulary
from scalestudy.study.keys import suggestion
from scalestudy.util.errors import UserError


def panels_folder() -> Path:
    """Where a user's own panels are: `~/.config/scalestudy/panels`, as XDG_CONFIG_HOME says."""
    import platformdirs

    return Path(platformdirs.user_config_dir("scalestudy")) / "panels"


def shipped_panels() -> dict[str, str]:
    """Texts of the panels that come with the package, by name."""
    folder = files("scalestudy.features.proposal") / "panels"
    found = {file.name.removesuffix(".toml"): file.read_text() for file in folder.iterdir()}
    return dict(sorted(found.items()))


def own_panels() -> dict[str, Path]:
    """Files of the user's own panels, by name; one of these goes before a shipped one."""
    return {path.stem: path for path in sorted(panels_folder().glob("*.toml"))}


def find_panel(name: str) -> Panel:
    """The panel of this name, or of this file (with a slash, or ending in .toml).

    Raises:
        UserError: If there is none, or if something in it is not right, with its line.
    """
    if name.endswith(".toml") or "/" in name:
        return read_panel(Path(name).expanduser(), vocabulary())
    own, shipped = own_panels(), shipped_panels()
    if name in own:
        return read_panel(own[name], vocabulary())
    if name not in shipped:
        known = sorted({*own, *shipped})
        close = suggestion(name, known)
        meant = f"Did you mean `{close}`? " if close else ""
        raise UserError(
            f"a panel out of {', '.join(known)}",
            f"{name!r}",
            f"{meant}Choose one with --panel, or name a file of your own: --panel ./mine.toml.",
        )
    return parse_panel(shipped[name], f"{name}.toml", vocabulary())


def all_panels() -> Iterator[tuple[str, Panel | UserError]]:
    """Every panel by its name; of one that is not right, why."""
    for name in sorted({*own_panels(), *shipped_panels()}):
        try:
            yield name, find_panel(name)
        except UserError as error:
            yield name, error
