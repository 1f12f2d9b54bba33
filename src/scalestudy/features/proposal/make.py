"""The page that a panel asks for, of a study."""

from typing import TYPE_CHECKING

from scalestudy.launch.status import study_status
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.features.proposal.page import Statement
    from scalestudy.features.proposal.subject import Ask
    from scalestudy.study.store import StudyFolder


def make_statement(opened: "StudyFolder", panel: str, ask: "Ask") -> "Statement":
    """Say what a study supports of what a panel asks for.

    Args:
        opened: The study, whatever state it is in.
        panel: Name of a panel, or a file of one.
        ask: What is asked for.

    Raises:
        UserError: If there is no such panel, something in the panel is not right, or `ask` names
            what cannot be or was not measured.
    """
    from scalestudy.analysis.read import read_study
    from scalestudy.features.proposal.attempts import work_of
    from scalestudy.features.proposal.find import find_panel
    from scalestudy.features.proposal.page import statement

    _check(ask)
    profile = find_panel(panel)
    overview = study_status(opened)
    findings = read_study(opened, overview=overview)
    return statement(findings, profile, ask, work_of(opened, overview))


def _check(ask: "Ask") -> None:
    """Refuse numbers that make no request."""
    whole = {
        "--runs": ask.runs, "--seeds": ask.seeds, "--workers": ask.workers, "--epochs": ask.epochs,
        "--per-node": ask.per_node,
    }  # fmt: skip
    for name, value in whole.items():
        if value is not None and not 1 <= value <= 10**9:
            raise UserError(f"{name} from 1 on", f"{value}", f"Correct {name}.")
    if ask.charge is not None and not 0 < ask.charge <= 10**9:
        raise UserError("--charge above 0", f"{ask.charge:g}", "Correct --charge.")
    if not 0 <= ask.reserve <= 10:
        raise UserError("--reserve as a share, from 0 on (0.1 is a tenth)", f"{ask.reserve:g}", "Correct it.")
