"""How and on which machines the numbers were measured, and which are left out."""

from collections.abc import Iterator, Sequence

from scalestudy.analysis.costs import may_have_tf32
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import engines_of, gpu_names
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
from scalestudy.util.text import join_first

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
    runs, rows = findings.runs, findings.rows
    measured_here = any(not run.foreign for run in runs)
    quality = _quality(findings, measured_here)
    # How another tool took its numbers is not known: only what is computed from them is explained.
    if runs and not measured_here:
        sentences = [_RATIO, _INTERVALS]
        if any(run.result.quality is not None for run in runs):
            sentences.append(quality)
        return sentences
    sentences = [_THROUGHPUT, _TIME]
    counts = {row.workers for row in rows}
    # With one number of workers there is no speed-up to explain.
    if len(counts) > 1:
        sentences.append(_SPEED_UP)
    sentences.append(_COST)
    # Single runs have no intervals.
    if any(row.runs > 1 for row in rows):
        sentences.append(_INTERVALS)
    if findings.measures.sequential:
        sentences.append(_SEQUENTIAL)
    if _by_script(findings):
        sentences.append(_SCRIPT)
    sentences += _several_engines(findings)
    sentences.append(quality)
    if any(run.result.swept.keys() & REPEATS for run in runs):
        sentences.append(_SPLITS)
    sentences += _taken(findings)
    sentences += _arithmetic(findings)
    sentences += _caveats(findings)
    return sentences


def _several_engines(findings: Findings) -> Iterator[str]:
    of_rows = engines_of(findings.measures.groups)
    names = dict.fromkeys(of_rows.values())
    engines = [label_of(name) for name in names]
    # A difference between engines is one of all their software.
    if len(engines) > 1:
        yield (
            f"Several engines were used ({', '.join(engines)}). Speed-up, efficiency and quality compare a"
            " row with one worker of its own engine. Time to train, cost and cost efficiency compare"
            " engines: such a difference includes all of their software, not only the strategies."
        )


def _quality(findings: Findings, measured_here: bool) -> str:
    metrics = sorted({row.metric for row in findings.rows})
    named = " / ".join(map(metric_label, metrics)) or "metric"
    ways: dict[str, None] = {}
    for row in findings.rows:
        if row.sense.better:
            ways[f" ({direction_label(row.sense.better)})"] = None
    measured = ""
    if measured_here and _by_script(findings):
        measured = " as reported by the script"
    elif measured_here:
        splits = set()
        for run in findings.runs:
            if not run.foreign:
                splits.add(run.result.quality_split)
        sets = " / ".join(sorted(splits)) or "validation"
        measured = (
            f" of the saved model on the whole {sets} set, each sample once, for any number"
            " of workers"
        )
    return (
        f"Quality is {named}{''.join(ways)}{measured}. It is compared"
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
    dates: set[str] = set()
    hosts: set[str] = set()
    for run in findings.runs:
        # When and where other tools ran is not known.
        if run.foreign:
            continue
        hosts.update(run.result.hosts)
        if run.result.finished:
            dates.add(run.result.finished[:10])
    if not dates:
        return
    text = f"Runs finished on {min(dates)}"
    if len(dates) > 1:
        text += f" to {max(dates)}"
    if hosts:
        text += f" on {join_first(sorted(hosts), most=MOST_HOSTS)}"
    yield f"{text}."


def _arithmetic(findings: Findings) -> Iterator[str]:
    recorded = set()
    for run in findings.runs:
        if run.result.precision:
            recorded.add(run.result.precision)
    if recorded:
        known = [_PRECISIONS.get(name, name) for name in sorted(recorded)]
        yield f"Arithmetic is {' / '.join(known)}."
    if any(map(_gives_up_tf32, findings.runs)):
        yield (
            "TensorFlow's default on GPUs from Ampere on is TensorFloat-32. IEEE's float32 is slower and"
            " hides more of the exchange behind computing, so efficiency looks better than with"
            ' precision = "tf32".'
        )
    # A step on several GPUs takes as long as on the slowest, so that unlike ones are named.
    kinds: dict[str, dict[str, None]] = {}
    for run in findings.runs:
        for name in gpu_names([run]):
            kinds.setdefault(name, {})[key_of_run(run).label] = None
    if len(kinds) > 1:
        used = []
        for name, rows in sorted(kinds.items()):
            used.append(f"{name}: {', '.join(rows)}")
        yield (
            f"Rows used different GPUs ({'; '.join(used)}). Speed-ups include the difference between them,"
            " and a step on several takes as long as on the slowest. Use one kind for all runs:"
            " CUDA_VISIBLE_DEVICES, or gpu_request and constraint in the site profile."
        )


def _gives_up_tf32(run: Run) -> bool:
    """Whether a run computed in IEEE's float32 on a GPU that has TensorFloat-32."""
    if run.result.precision != "float32":
        return False
    return any(map(may_have_tf32, gpu_names([run])))


def _caveats(findings: Findings) -> Iterator[str]:
    if any(not is_synchronous(row.implementation) for row in findings.rows):
        yield (
            "Asynchronous workers update the weights independently, while other workers change them: the more"
            " workers, the staler each update. Their throughput counts samples, not progress, so judge them"
            " by their quality over seeds. They have no speed-up and are never advised."
        )
    shared = 0
    for run in findings.runs:
        if any(rank.nodes_shared for rank in run.ranks):
            shared += 1
    if shared:
        yield (
            f"{shared} of {len(findings.runs)} runs were timed on nodes that other jobs could use at the same"
            " time, which may have slowed them down. Set exclusive = true in the site profile to get whole"
            " nodes."
        )
    lost = []
    for run in findings.runs:
        # A timing run has no model to save.
        if run.result.model_missing and not run.is_timing:
            why = run.result.model_missing
            lost.append(f"{run.result.name} ({why})")
    if lost:
        yield f"Measured runs without a saved model: {'; '.join(lost)}."


def environments(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Name and value of what the runs recorded; all values are listed if runs differ."""
    facts: dict[str, dict[str, None]] = {}
    variables: dict[str, dict[str, None]] = {}
    for run in runs:
        for rank in run.ranks:
            for name, value in _facts(rank):
                # An unknown value keeps its place in the table for another rank's.
                values = facts.setdefault(name, {})
                if value:
                    values[value] = None
            for name, value in record_variables(rank.environment).items():
                variables.setdefault(name, {})[value] = None
    listed = []
    for name, values in facts.items():
        if values:
            listed.append((name, "; ".join(values)))
    settings = []
    for name, values in sorted(variables.items()):
        value = _either(list(values))
        settings.append(f"{name}={value}")
    if settings:
        listed.append(("Variables", ", ".join(settings)))
    return listed


def environment_table(runs: Sequence[Run], caption: str = "") -> Table | None:
    """The recorded environment as a table; None if nothing was recorded."""
    rows = tuple(environments(runs))
    if not rows:
        return None
    return Table(headings_of("What:", "Recorded:"), rows, caption, name="environment")


def _either(values: Sequence[str]) -> str:
    """The values of a variable; their number if they are long, as the addresses of TF_CONFIG are."""
    text = " or ".join(values)
    if len(values) > 1 and len(text) > LONGEST:
        return f"({len(values)} different values)"
    return text


def _facts(rank: RankRecord) -> list[tuple[str, str]]:
    """What a rank recorded, "" where it is unknown."""
    environment = memory = ""
    if rank.environment_id:
        environment = f"{rank.environment_id} ({rank.environment_name})"
    if rank.memory_bytes:
        memory = units.size(rank.memory_bytes)
    versions = []
    for name, version in rank.versions.items():
        versions.append((_proper(name), version))
    return [
        ("Host", rank.host),
        ("Processor", rank.cpu_model),
        ("Memory", memory),
        ("Devices", ", ".join(rank.devices)),
        ("Cores of a rank", str(len(rank.cpus) or "")),
        ("Threads of a rank", str(rank.threads)),
        ("Driver", rank.driver or ""),
        ("Kernel", rank.kernel),
        ("Environment", environment),
        *versions,
        ("Placement from", rank.placement_source),
    ]


def _proper(name: str) -> str:
    known = {"numpy": "NumPy"} | package_labels()
    capitalised = name[:1].upper() + name[1:]
    return known.get(name.lower(), capitalised)
