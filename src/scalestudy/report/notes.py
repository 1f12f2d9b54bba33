"""How and on which machines the numbers were measured, and which are left out."""

from collections.abc import Iterator, Sequence

from scalestudy.analysis.costs import may_have_tf32
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import engines_of
from scalestudy.analysis.quality import MARGIN, OF_ERROR
from scalestudy.analysis.runs import Run, direction_label, key_of_run, metric_label
from scalestudy.analysis.sequential import ALPHA
from scalestudy.config.point import REPEATS
from scalestudy.measure.rank_environment import record_variables
from scalestudy.plugins.engines import label_of, package_labels
from scalestudy.plugins.strategies import is_synchronous
from scalestudy.report.document import Table, headings_of
from scalestudy.store.records import RankRecord
from scalestudy.util import units

_THROUGHPUT = (
    "Throughput is the number of samples processed, divided by the training time, in the steady epochs:"
    " all but the first and those in which a run was resumed."
)
_TIME = (
    "Training time consists of the steps and the waiting for their input, over all epochs, without start-up,"
    " compilation and evaluation."
)
_SPEED_UP = (
    "Speed-up S(n) is T(1)/T(n) for the same work, computed twice: from steady throughput and from total"
    " training time. Efficiency is S(n)/n. The baseline is one worker of the same strategy, else of"
    " plain training by the same engine. Without either, both are relative to the fewest workers n0 of the"
    " strategy: T(n0)/T(n) and n0 T(n0)/(n T(n))."
)
_RATIO = (
    "Speed-up S(n) is T(1)/T(n), and efficiency S(n)/n. The baseline is one worker of the same strategy,"
    " else of plain training."
)
_INTERVALS = (
    "Intervals are 95 % confidence intervals over seeds (Hoefler and Belli, SC15). Runs of one seed form a"
    " block: they were taken in one round, in random order, and share split and initial weights. Speed-ups"
    " and differences in quality are paired within blocks (Fisher 1935; Montgomery, chapter 4). Each"
    " variance is averaged with the common one of all rows, which counts as two degrees of freedom"
    " (Smyth 2004). Means of times are geometric; intervals of metrics between 0 and 1 are computed on"
    " asin(sqrt(q)) (Anscombe 1948)."
)
_COST = (
    "Time to train lasts from the start of the processes to the result, in a queue from the start of the job"
    " to its end. Cost is that time multiplied by the units billed, in a queue those that the job held. Cost"
    " efficiency is the cost of the cheapest one-worker row whose quality is as good as that of the best,"
    " divided by the cost of the row. Scaling efficiency compares a strategy with its own one worker."
)
_PRECISIONS = {
    "float32": "float32 (IEEE's on every device)",
    "tf32": "tf32 (float32, with the factors of GPUs' matrix products and convolutions rounded to 10 bits)",
}
_SPLITS = (
    "Splits are repeats, like seeds: a row shows their mean. They share most of their"
    " training samples, so their spread says less about new data than independent data sets would (Bengio"
    " and Grandvalet, JMLR 5, 2004)."
)
_SCRIPT = (
    "These runs were trained by a user's script. Samples are those that it counted, the training of an epoch"
    " ends with its last step, and the time of the slowest worker counts. The script decides whether runs of"
    " one seed share initial weights and batches."
)
_SEQUENTIAL = (
    "The study ran until it was decided: every row was timed first, by short runs that stop once the step"
    " time is stable; the times of a training are computed from them. Then the fastest row that is cheap"
    " enough and its reference were trained with the same seeds, until a group-sequential test settled its"
    " quality; where it was worse, the search went on by bisection among rows with fewer workers. A row that"
    f" is truly worse by the margin slips through in at most {ALPHA:.1%} of studies (alpha spending: Lan and"
    " DeMets, Biometrika 70, 1983; Jennison and Turnbull 2000). Of rows with equal updates, one was trained"
    " for all."
)
MOST_HOSTS = 4
"""Largest number of nodes that are named."""
LONGEST = 80
"""Characters of the values of a variable that differs between ranks or runs."""


def notes(findings: Findings) -> list[str]:
    """Sentences about the measurement, in the order of the table's columns."""
    measured_here = any(not run.foreign for run in findings.runs)
    quality = _quality(findings, measured_here)
    if findings.runs and not measured_here:
        known = any(run.result.quality is not None for run in findings.runs)
        return [_RATIO, _INTERVALS, *([quality] * known)]
    return [
        _THROUGHPUT,
        _TIME,
        *([_SPEED_UP] if len({row.workers for row in findings.rows}) > 1 else []),
        _COST,
        *([_INTERVALS] if any(row.runs > 1 for row in findings.rows) else []),
        *([_SEQUENTIAL] if findings.measures.sequential else []),
        *([_SCRIPT] if _by_script(findings) else []),
        *_several_engines(findings),
        quality,
        *(
            [_SPLITS]
            if any(run.result.swept.keys() & REPEATS for run in findings.runs)
            else []
        ),
        *_taken(findings),
        *_arithmetic(findings),
        *_caveats(findings),
    ]


def _several_engines(findings: Findings) -> Iterator[str]:
    engines = [
        label_of(name)
        for name in dict.fromkeys(engines_of(findings.measures.groups).values())
    ]
    if len(engines) > 1:
        yield (
            f"Several engines were used ({', '.join(engines)}). Speed-up, efficiency and quality compare a"
            " row with one worker of its own engine. Time to train, cost and cost efficiency compare"
            " engines: such a difference includes all of their software, not only the strategies."
        )


def _quality(findings: Findings, measured_here: bool) -> str:
    splits = sorted(
        {run.result.quality_split for run in findings.runs if not run.foreign}
    ) or ["validation"]
    metrics = [
        metric_label(name) for name in sorted({row.metric for row in findings.rows})
    ] or ["metric"]
    ways = dict.fromkeys(
        f" ({direction_label(row.sense.better)})"
        for row in findings.rows
        if row.sense.better
    )
    measured = (
        " as reported by the script"
        if _by_script(findings)
        else f" of the saved model on the whole {' / '.join(splits)} set, each sample once, for any number"
        " of workers"
    )
    return (
        f"Quality is {' / '.join(metrics)}{''.join(ways)}{measured if measured_here else ''}. It is compared"
        f" with the one-worker runs, with a margin: {describe_margin(findings)}. As in non-inferiority trials"
        " (Piaggio et al., JAMA 2012), a row is no worse if the interval of the difference lies on the good"
        " side of the margin, worse if it lies beyond the margin, and not settled otherwise."
    )


def _by_script(findings: Findings) -> bool:
    return any(run.result.by_script for run in findings.runs)


def describe_margin(findings: Findings) -> str:
    """The accepted loss of quality, and where it comes from."""
    if findings.criteria.margin is not None:
        return f"{findings.criteria.margin} of quality, set by quality_margin in the study file"
    return (
        f"by default {MARGIN:g}, or {100 * OF_ERROR:g} % of the reference's error if that is less, for"
        f" metrics in [0, 1], and {100 * MARGIN:g} % of the reference for others (quality_margin in the study"
        " file sets it)"
    )


def _taken(findings: Findings) -> Iterator[str]:
    results = [run.result for run in findings.runs if not run.foreign]
    dates = sorted(result.finished[:10] for result in results if result.finished)
    if not dates:
        return
    when = " to ".join(sorted({dates[0], dates[-1]}))
    hosts = sorted({host for result in results for host in result.hosts})
    more = f" and {len(hosts) - MOST_HOSTS} more" if len(hosts) > MOST_HOSTS else ""
    where = f" on {', '.join(hosts[:MOST_HOSTS])}{more}" if hosts else ""
    yield f"Runs finished on {when}{where}."


def _arithmetic(findings: Findings) -> Iterator[str]:
    known = sorted(
        {run.result.precision for run in findings.runs if run.result.precision}
    )
    if known:
        yield f"Arithmetic is {' / '.join(_PRECISIONS.get(name, name) for name in known)}."
    if any(
        run.result.precision == "float32"
        and rank.device_uuids
        and any(map(may_have_tf32, rank.devices))
        for run in findings.runs
        for rank in run.ranks
    ):
        yield (
            "TensorFlow's default on GPUs from Ampere on is TensorFloat-32. IEEE's float32 is slower and"
            " hides more of the exchange behind computing, so efficiency looks better than with"
            ' precision = "tf32".'
        )
    kinds: dict[str, dict[str, None]] = {}
    for run in findings.runs:
        for rank in run.ranks:
            for name in rank.devices if rank.device_uuids else ():
                kinds.setdefault(name, {})[key_of_run(run).label] = None
    if len(kinds) > 1:
        used = "; ".join(
            f"{name}: {', '.join(rows)}" for name, rows in sorted(kinds.items())
        )
        yield (
            f"Rows used different GPUs ({used}). Speed-ups include the difference between them,"
            " and a step on several takes as long as on the slowest. Use one kind for all runs:"
            " CUDA_VISIBLE_DEVICES, or gpu_request and constraint in the site profile."
        )


def _caveats(findings: Findings) -> Iterator[str]:
    if any(not is_synchronous(row.implementation) for row in findings.rows):
        yield (
            "Asynchronous workers update the weights independently, while other workers change them: the more"
            " workers, the staler each update. Their throughput counts samples, not progress, so judge them"
            " by their quality over seeds. They have no speed-up and are never advised."
        )
    shared = sum(any(rank.nodes_shared for rank in run.ranks) for run in findings.runs)
    if shared:
        yield (
            f"{shared} of {len(findings.runs)} runs were timed on nodes that other jobs could use at the same"
            " time, which may have slowed them down. Set exclusive = true in the site profile to get whole"
            " nodes."
        )
    lost = [
        run.result
        for run in findings.runs
        if run.result.model_missing and not run.is_timing
    ]
    if lost:
        names = "; ".join(f"{result.name} ({result.model_missing})" for result in lost)
        yield f"Measured runs without a saved model: {names}."


def environments(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Name and value of what the runs recorded; all values are listed if runs differ."""
    ranks = [rank for run in runs for rank in run.ranks]
    facts: dict[str, dict[str, None]] = {}
    variables: dict[str, dict[str, None]] = {}
    for rank in ranks:
        for name, value in _facts(rank):
            facts.setdefault(name, {}).update({value: None} if value else {})
        for name, value in record_variables(rank.environment).items():
            variables.setdefault(name, {})[value] = None
    listed = [(name, "; ".join(values)) for name, values in facts.items() if values]
    settings = ", ".join(
        f"{name}={_either(list(values))}" for name, values in sorted(variables.items())
    )
    return [*listed, ("Variables", settings)] if settings else listed


def environment_table(runs: Sequence[Run], caption: str = "") -> Table | None:
    """The recorded environment as a table; None if nothing was recorded."""
    rows = tuple(environments(runs))
    return (
        Table(headings_of("What:", "Recorded:"), rows, caption, name="environment")
        if rows
        else None
    )


def _either(values: Sequence[str]) -> str:
    """The values of a variable; their number if they are long, as the addresses of TF_CONFIG are."""
    text = " or ".join(values)
    return (
        text
        if len(values) == 1 or len(text) <= LONGEST
        else f"({len(values)} different values)"
    )


def _facts(rank: RankRecord) -> list[tuple[str, str]]:
    versions = [(_proper(name), version) for name, version in rank.versions.items()]
    memory = units.size(rank.memory_bytes) if rank.memory_bytes else ""
    return [
        ("Host", rank.host),
        ("Processor", rank.cpu_model),
        ("Memory", memory),
        ("Devices", ", ".join(rank.devices)),
        ("Cores of a rank", str(len(rank.cpus)) if rank.cpus else ""),
        ("Threads of a rank", str(rank.threads)),
        ("Driver", rank.driver or ""),
        ("Kernel", rank.kernel),
        (
            "Environment",
            f"{rank.environment_id} ({rank.environment_name})"
            if rank.environment_id
            else "",
        ),
        *versions,
        ("Placement from", rank.placement_source),
    ]


def _proper(name: str) -> str:
    known = {"numpy": "NumPy"} | package_labels()
    return known.get(name.lower(), name[:1].upper() + name[1:])
