"""All facts that a panel's sentences may name."""

from collections.abc import Callable

from scalestudy.features.proposal import facts_cost, facts_scaling, facts_setup
from scalestudy.features.proposal.panel import NAMED
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.words import Fact, Missing

FACTS: dict[str, Callable[[Subject], Fact]] = {
    make.__name__: make for make in (*facts_setup.FACTS, *facts_scaling.FACTS, *facts_cost.FACTS)
}
"""By name; what each says stands in its docstring, in a line."""


def filled(text: str, subject: Subject, needs: tuple[str, ...] = ()) -> str | list[Missing]:
    """A sentence with the values of its facts; all that is missing where it cannot be said."""
    found = {name: FACTS[name](subject) for name in (*NAMED.findall(text), *needs)}
    missing = [fact for fact in found.values() if isinstance(fact, Missing)]
    return missing or NAMED.sub(lambda name: str(found[name[1]]), text)
