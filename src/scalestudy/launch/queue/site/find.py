"""Reading site profiles: by name from the user's configuration, or by path."""

import json
import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scalestudy.errors import UserError
from scalestudy.launch.queue.site.profile import Bill, Container, Site
from scalestudy.study import launchers
from scalestudy.study.file import read_text, toml_table
from scalestudy.study.keys import shown, suggestion, wanted
from scalestudy.study.lines import Place, line_numbers
from scalestudy.study.store import StudyFolder
from scalestudy.study.variables import UndefinedVariable, expanded

_INIT = "`scalestudy site init NAME` writes one with every key explained."


def sites_folder() -> Path:
    """Where a user's site profiles are: `~/.config/scalestudy/sites`, as XDG_CONFIG_HOME says."""
    import platformdirs

    return Path(platformdirs.user_config_dir("scalestudy")) / "sites"


def known_sites() -> list[str]:
    """Names of the user's site profiles."""
    return sorted(path.stem for path in sites_folder().glob("*.toml"))


def find_site(name: str | None, base: Path) -> Site:
    """The site profile of this name or path; the only one there is when no name is given.

    Args:
        name: `launch.site`: a name, or a path (with a slash or ending in .toml).
        base: Folder that a relative path is seen from.

    Raises:
        UserError: If there is none, or if something in it is not right, with its line.
    """
    return load_site(site_path(name, base))


def site_path(name: str | None, base: Path) -> Path:
    """The file of a site profile.

    Raises:
        UserError: If there is none.
    """
    known = known_sites()
    listed = f"Known: {', '.join(known)}. " if known else ""
    if name is None:
        if len(known) == 1:
            return sites_folder() / f"{known[0]}.toml"
        raise UserError(
            "the name of a site profile, in launch.site",
            "none" + (f", and {len(known)} to choose from" if known else f", and none in {sites_folder()}"),
            f'{listed}Write site = "NAME" under [launch]; {_INIT}',
        )
    if name.endswith(".toml") or "/" in name:
        path = base / Path(name).expanduser()
    else:
        path = sites_folder() / f"{name}.toml"
    if not path.is_file():
        close = suggestion(name, known)
        meant = f'Did you mean "{close}"? ' if close else listed
        raise UserError(f"a site profile at {path}", "no such file", f"{meant}{_INIT[0]}{_INIT[1:]}")
    return path


def load_site(path: Path) -> Site:
    """Read a site profile.

    Raises:
        UserError: Naming the line of whatever is not right.
    """
    text = read_text(path)
    table = toml_table(text, path.name)
    lines = {".".join(map(str, at)): line for at, line in line_numbers(text).items()}
    place = Place(path.name, lines)
    table = {"name": path.stem, **table}
    _refuse_unknown(table, Site, "", place)
    if isinstance(table.get("container"), dict):
        _refuse_unknown(table["container"], Container, "container.", place)
    try:
        # JSON's strictness: no "8" for 8, but a list for a tuple.
        site = Site.model_validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as error:
        _refuse_wrong(error, place)
    _refuse_two_environments(site, place)
    return _expanded(site, path.absolute().parent)


def billing_unit(folder: StudyFolder) -> Bill | None:
    """The unit by which the site of a study charges, as its profile says now.

    Returns:
        None for a study of this machine, and where the profile cannot be read here. A relative path in
        launch.site is seen from the folder in which `studies/NAME` lies.
    """
    launch = folder.study.launch
    if launch.on == launchers.DEFAULT:
        return None
    try:
        return find_site(launch.site, folder.path.absolute().parent.parent).bill
    except UserError:
        return None


def _refuse_unknown(table: dict[str, Any], model: type[Any], prefix: str, place: Place) -> None:
    for key in table:
        if key not in model.model_fields:
            close = suggestion(key, model.model_fields)
            raise UserError(
                f"a known key of {'a site profile' if not prefix else '[container]'}",
                f"`{key}`{place.of(prefix + key)}",
                f"Did you mean `{close}`?" if close else f"Remove it; {_INIT}",
            )


def _refuse_wrong(error: ValidationError, place: Place) -> None:
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    key = parts[0] if parts else ""
    if first["type"] == "missing":
        name = ".".join(parts)
        raise UserError(
            f"{name} in a site profile", f"none{place.of(name, key)}", f"Add it; {_INIT}"
        ) from None
    model: type[Any] = Site
    name = key
    if key == "container" and len(parts) > 1:
        model, name = Container, parts[1]
    schema = model.model_json_schema()["properties"].get(name, {})
    if first["type"] == "value_error":
        what = str(first["msg"]).removeprefix("Value error, ")
    else:
        what = _wanted(schema)
    raise UserError(
        f"{what} for {'.'.join(parts[:2]) if model is Container else key}",
        f"{shown(first['input'])}{place.of(key)}",
        f"Correct the value; {_INIT}",
    ) from None


def _wanted(schema: dict[str, Any]) -> str:
    parts = [part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"]
    kinds = {"array": "a list of quoted texts", "object": "a table of quoted texts"}
    return " or ".join(kinds.get(part.get("type", ""), "") or wanted(part) for part in parts)


def _refuse_two_environments(site: Site, place: Place) -> None:
    if site.container is not None and site.environment is not None:
        raise UserError(
            "an environment or a container in a site profile",
            f"both{place.of('environment')}",
            "Remove one of the two; container.python names the Python inside an image.",
        )


def _expanded(site: Site, base: Path) -> Site:
    """With `~` replaced in paths, and variables in those that are used where the study is submitted.

    Other variables are left to the nodes' shells; a plain $ is written $$ for them.
    """
    changes: dict[str, Any] = {}
    if site.environment:
        changes["environment"] = _path(site.environment, base)
    if site.scratch:
        changes["scratch"] = os.path.expanduser(site.scratch)
    if site.container:
        own = site.container
        container = {
            "image": _path(own.image, base),
            "binds": tuple(":".join(map(os.path.expanduser, each.split(":"))) for each in own.binds),
            "overlay": tuple(map(os.path.expanduser, own.overlay)),
            "cache": os.path.expanduser(own.cache) if own.cache else None,
        }
        changes["container"] = own.model_copy(update=container)
    return site.model_copy(update=changes)


def _path(text: str, base: Path) -> str:
    try:
        return os.path.abspath(base / expanded(text)).replace("$", "$$")
    except UndefinedVariable:
        return os.path.expanduser(text)  # known on the nodes only
