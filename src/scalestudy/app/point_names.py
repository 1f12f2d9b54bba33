"""Points named on the command line."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalestudy.study.store import StudyFolder


def refuse_unknown_points(folder: "StudyFolder", names: "Iterable[str]") -> None:
    """Refuse names that are no points of the study.

    Raises:
        UserError: Naming the nearest.
    """
    import difflib

    from scalestudy.util.errors import UserError

    known = [point.name for point in folder.points()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3, cutoff=0.5) or known[:3]
            raise UserError(
                f"a point of {folder.path}", name, f"There are {len(known)}, such as {', '.join(near)}."
            )
