"""Words for costs that are missing."""

from scalestudy.analysis.costs import (
    NoPeak,
    Uncounted,
    UnknownPeak,
    UnlikePeaks,
    Unmeasured,
    Unrecorded,
)


def describe_unmeasured(unmeasured: tuple[Unmeasured, ...]) -> str | None:
    """Which costs are missing and why, as `name: reason; ...`; None if none is."""
    parts = [_describe(reason) for reason in unmeasured]
    return "; ".join(parts) or None


def _describe(reason: Unmeasured) -> str:
    if isinstance(reason, Unrecorded):
        return f"{reason.name}: {reason.reason}"
    if isinstance(reason, Uncounted):
        layers = ", ".join(sorted(reason.layers))
        return f"flops_per_sample: of {layers} the products are not counted"
    if reason == "energy-before-restart":
        return "energy: of a resumed run only the last process is known"
    return f"mfu: {_no_peak(reason)}"


def _no_peak(reason: NoPeak) -> str:
    if reason == "cpus":
        return "the peak of CPUs is unknown"
    if reason == "arithmetic-unknown":
        return "the arithmetic of a run was not recorded"
    if isinstance(reason, UnlikePeaks):
        return f"runs computed on unlike GPUs ({', '.join(sorted(reason.names))})"
    assert isinstance(reason, UnknownPeak)
    return f"no peak of {reason.name} in {reason.arithmetic} is known"
