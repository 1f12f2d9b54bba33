"""Names that existed once are refused with what to do instead, which the manual lists."""

import re
from pathlib import Path

import pytest

from scalestudy.config import keys
from scalestudy.config.parse import parse_study
from scalestudy.config.removed import key_instead, removed, what_instead
from scalestudy.launch.queue.site_profile import Container, Site, load_site
from scalestudy.util.errors import UserError
from scalestudy.util.manual import page_text

PROJECT = Path(__file__).parents[2]
CHANGELOG = (PROJECT / "CHANGELOG.md").read_text()
SECTIONS = re.findall(r"(?ms)^### Removed.*?\n(.*?)(?=^##|\Z)", CHANGELOG)
SPANS = set(re.findall(r"`([^`]+)`", "\n".join(SECTIONS)))
COMMANDS = (
    *(
        "advise",
        "cancel",
        "check",
        "compare",
        "data prepare",
        "data show",
        "demo",
        "diagnose",
        "launch",
        "logs",
    ),
    *(
        "model evaluate",
        "model export",
        "model predict",
        "model samples",
        "proposal",
        "recipe",
        "report",
        "run",
    ),
    *("site init", "status", "submit"),
)


def test_the_changelog_leads_to_the_table_of_all_names():
    assert "(docs/reference/removed.md)" in SECTIONS[0]
    page = page_text("reference/removed")
    for table in removed().values():
        assert [name for name in table if f"| `{name}` |" not in page] == []


def test_what_the_changelog_says_is_removed_has_an_action_or_exists(call):
    """Dotted keys, and options behind their command."""
    dotted = [
        span
        for span in SPANS
        if re.fullmatch(r"(data|train|launch|container)\.\w+", span)
    ]
    gone = [span for span in dotted if keys.full_name(span) is None]
    assert [
        span
        for span in gone
        if not (what_instead("study", span) or what_instead("site", span))
    ] == []
    pairs = [
        re.fullmatch(rf"({'|'.join(COMMANDS)}) (--[a-z-]+)", span) for span in SPANS
    ]
    options = {(match[1], match[2]) for match in pairs if match}
    untold = []
    for command, option in sorted(options):
        if what_instead("options", f"{command} {option}"):
            continue
        if not re.search(rf"{option}\b", call(*command.split(), "--help")[1]):
            untold.append(f"{command} {option}")
    assert untold == []


@pytest.mark.parametrize("words", removed()["options"])
def test_a_removed_option_does_not_exist(call, words):
    *command, option = words.split()
    assert not re.search(rf"{option}\b", call(*command, "--help")[1])


@pytest.mark.parametrize("name", removed()["study"])
def test_a_removed_key_of_a_study_is_refused_with_its_action(name):
    section, _, key = name.rpartition(".")
    text = (
        f'task = "cnn"\n[{section}]\n{key} = 1\n'
        if section
        else f'{key} = 1\ntask = "cnn"\n'
    )
    with pytest.raises(UserError) as refused:
        parse_study(text, Path("study.toml"))
    assert refused.value.action == what_instead("study", name)
    assert key_instead(name) == refused.value.action, "swept, too"


@pytest.mark.parametrize("name", removed()["site"])
def test_a_removed_key_of_a_site_is_refused_with_its_action(tmp_path, name):
    section, _, key = name.rpartition(".")
    assert key not in (Container if section else Site).model_fields
    file = tmp_path / "here.toml"
    file.write_text(
        f'[{section}]\nimage = "a.sif"\n{key} = 1\n' if section else f"{key} = 1\n"
    )
    with pytest.raises(UserError) as refused:
        load_site(file)
    assert refused.value.action == what_instead("site", name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, name) for k in ("options", "commands") for name in removed()[k]],
)
def test_a_removed_option_or_command_is_refused_with_its_action(call, kind, name):
    code, _, errors = call(*name.split())
    assert code == 2
    assert " ".join(what_instead(kind, name).split()) in " ".join(errors.split())


def test_a_name_that_never_existed_has_no_action():
    assert key_instead("epoch") is None
    assert what_instead("options", "run --never") is None
