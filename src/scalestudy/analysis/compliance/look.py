"""All findings of a study, the gravest first."""

from collections.abc import Callable

from scalestudy.analysis.compliance.base import SEVERITIES, Finding
from scalestudy.analysis.compliance.changed_batch import changed_batch
from scalestudy.analysis.compliance.constant_rate import constant_rate
from scalestudy.analysis.compliance.leak import leak
from scalestudy.analysis.compliance.one_run import one_run
from scalestudy.analysis.compliance.remainder import remainder
from scalestudy.analysis.compliance.shard import shard
from scalestudy.analysis.compliance.single_epoch import single_epoch
from scalestudy.analysis.compliance.stated import added_up, stated, synthetic
from scalestudy.analysis.compliance.unprocessed import unprocessed
from scalestudy.analysis.compliance.warm_up import warm_up
from scalestudy.analysis.findings import Findings

FINDERS: tuple[Callable[[Findings], list[Finding]], ...] = (
    unprocessed, remainder, shard, leak, stated, single_epoch, warm_up, added_up, constant_rate,
    changed_batch, synthetic, one_run,
)  # fmt: skip


def look(findings: Findings) -> list[Finding]:
    """What is found in a study's numbers."""
    found = [each for finder in FINDERS for each in finder(findings)]
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))
