"""The engines: what there is to know of each before its framework is imported, as on a login node.

An engine of another package adds a row by an entry point in the group "scalestudy.engines" that names an
`EngineTraits`.
"""

import ast
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from scalestudy.study.strategies import Rendezvous, Role, Traits, traits
from scalestudy.util.errors import UserError
from scalestudy.util.files import contents
from scalestudy.util.registry import Registry


class Process(Protocol):
    """A process among those of a run: what a `Placement` says of it."""

    @property
    def rank(self) -> int:
        """Its index among all."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host of every process."""

    @property
    def port(self) -> int | None:
        """First of the run's ports on each node."""

    @property
    def source(self) -> str:
        """Who said so."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """Role of every process; empty where all are workers."""


@dataclass(frozen=True)
class Collective:
    """One way in which all ranks sum an array.

    Attributes:
        name: As checks, their reports and their options name it; unique among all engines.
        label: For people.
        strategy: The strategy whose processes sum in this way.
        mend: What often mends it.
        communication: As `launch.communication` names it, where the strategy lets the study choose.
        device: "cpu" if it sums in the memory of the host always, "gpu" if only between GPUs.
        built_with: What the strategy's library must be built with.
        launcher: The one launcher whose processes it works in, by `Placement.source`; "" for any. That
            launcher tells the ranks of each other, once in the life of a rank.
        also: What else of `launch.communication` it is taken for, where it can be used.
        spare: Whether nobody uses it where there are GPUs: another one is taken for it.
    """

    name: str
    label: str
    strategy: str
    mend: str
    communication: str | None = None
    device: Literal["cpu", "gpu"] | None = None
    built_with: tuple[str, ...] = ()
    launcher: str = ""
    also: tuple[str, ...] = ()
    spare: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """What a study that uses it needs: its communication, or what its processes meet by."""
        return (self.communication or str(self.rendezvous and self.rendezvous.name), *self.also)

    def of_use(self, *, gpu: bool) -> bool:
        """Whether runs can use it, on GPUs or on CPUs."""
        return not self.spare if gpu else self.device != "gpu"

    @property
    def library(self) -> str | None:
        """StrategyLibrary that it needs beside the engine."""
        return traits(self.strategy).library

    @property
    def rendezvous(self) -> Rendezvous | None:
        """How the processes that sum by it find each other."""
        return traits(self.strategy).rendezvous

    @property
    def swept(self) -> str:
        """The strategy that a study names to use it."""
        default = engine_traits(traits(self.strategy).engine).default_strategy
        return default if self.strategy in (traits(default).stands_for or ()) else self.strategy


class Requirement(NamedTuple):
    """A package that an engine needs, under one of these names; `versions` (PEP 440) were tried."""

    label: str
    packages: tuple[str, ...]
    versions: str


class StrategyLibrary(NamedTuple):
    """A library of some of an engine's strategies, which is built for one version of the framework.

    Attributes:
        name: Of its package.
        label: For people.
        versions: PEP 440's specifier of those that were tried.
        mend: How to build it.
        mend_sums: How to build it so that it sums at all, by Gloo or MPI.
        mend_gpus: How to build it so that it sums between GPUs, by NCCL.
    """

    name: str
    label: str
    versions: str
    mend: str
    mend_sums: str
    mend_gpus: str


class EngineTraits:
    """What there is to know of an engine without importing its framework.

    The defaults are those of a framework that needs nothing.

    Attributes:
        name: As written in a study file.
        label: For people.
        implementation: "module:attribute" of its `engines.base.Engine`.
        strategies: Those that belong to it, in the order in which they are shown.
        default_strategy: What a study sweeps that names no strategy.
        across: The strategy that starts a process for each worker, by which checks are made; "" without one.
        model_suffixes: Of the files that hold a trained model, one for each kind of models; records beside
            them end in ".json".
        export_forms: Suffixes by the forms that it exports models in; "" for a folder.
        requirements: Packages that it needs; the first is the framework, which the others' limits come from.
        install: What installs them: a sentence for who has none.
        libraries: Of its strategies.
        collectives: In the order in which they are tried; of one need, what is preferred comes later.
        variables: Environment variables that decide how it computes and sums, which a run records.
        trial_module: Module that tries one of `collectives` in a process of its own, times copies between
            GPUs, and says how things were built (see `engines.trial`); "" where
            there are none.
        unused: Packages that it only looks for: hidden while it is imported.
        script_modules: Modules by whose import a script is known that trains in a loop of its own: it is
            started as torchrun starts one, and measured. () where scripts train with Keras's `fit`.
        script_session: "module:class" that measures such a script in one process.
    """

    name: str
    label: str
    implementation: str
    default_strategy: str
    model_suffixes: tuple[str, ...]
    strategies: tuple[Traits, ...] = ()
    export_forms: Mapping[str, str] = MappingProxyType({})
    across: str = ""
    requirements: tuple[Requirement, ...] = ()
    install: str = ""
    libraries: tuple[StrategyLibrary, ...] = ()
    collectives: tuple[Collective, ...] = ()
    variables: tuple[str, ...] = ()
    trial_module: str = ""
    unused: tuple[str, ...] = ()
    script_modules: tuple[str, ...] = ()
    script_session: str = ""

    def environment(
        self, variables: Mapping[str, str], *, gpus: bool, rendezvous: Rendezvous | None = None,
        process: Process | None = None, quiet: bool = False,
    ) -> Mapping[str, str | None]:  # fmt: skip
        """Variables of a process that imports the framework, beside `variables`; None unsets one.

        `rendezvous` is how its strategy's processes find each other, None for one alone; `process` this one
        among them. A `quiet` one's last line of output is an answer: the framework says errors only.

        Raises:
            UserError: If the process lacks what the rendezvous needs.
        """
        return {}

    def missing_software(self, libraries: Collection[str] = ()) -> UserError | None:
        """What of the framework, or of these libraries of its strategies, is not installed here."""
        return None

    def versions(self) -> dict[str, str]:
        """Installed versions of what decides how it computes, by the name of the package."""
        return installed_versions(self.packages)

    @property
    def packages(self) -> list[str]:
        """Names of the packages of its requirements and libraries."""
        names = [name for requirement in self.requirements for name in requirement.packages]
        return [*names, *(library.name for library in self.libraries)]

    def weights_folder(self, variables: Mapping[str, str]) -> str:
        """Where the framework keeps pretrained weights that it has downloaded; "" where it has none."""
        return ""

    @property
    def built(self) -> str:
        """The package that `build_id` is of."""
        return self.name

    def build_id(self) -> str:
        """Tells builds of one version apart where they compute differently; "" where there are none."""
        return ""

    def why_no_gpus(self, variables: Mapping[str, str]) -> tuple[str, str] | None:
        """Why the framework uses no GPU (a clause), and what to do (a sentence), as it says itself.

        It is asked in a process of its own with these variables, which may take as long as a start.
        """
        return None

    def library(self, name: str) -> StrategyLibrary:
        """The library of this name; raises KeyError."""
        return {library.name: library for library in self.libraries}[name]

    def communications(self, strategy: str) -> tuple[str, ...]:
        """What `launch.communication` chooses from for a strategy that does the work; () where nothing."""
        ways = [way.communication for way in self.collectives if way.strategy == strategy]
        return tuple(name for name in ways if name)


def any_installed() -> bool:
    """Whether the framework of any engine is installed here."""
    return any(engine_traits(name).missing_software() is None for name in REGISTRY.names())


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those packages that are installed, by name."""
    versions = {}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


REGISTRY: Registry[EngineTraits] = Registry(
    "scalestudy.engines",
    {
        "tensorflow": "scalestudy.engines.tensorflow.traits:ENGINE",
        "torch": "scalestudy.engines.torch.traits:ENGINE",
    },
)
DEFAULT = "tensorflow"


def engine_traits(name: str) -> EngineTraits:
    """The row of an engine; raises KeyError."""
    return REGISTRY.get(name)


def engine_names() -> list[str]:
    """Names that a study file may give, in the order in which they are shown."""
    return REGISTRY.names()


def installed_engine() -> str:
    """The first engine that is installed here; the default where none is."""
    installed = (name for name in REGISTRY.names() if engine_traits(name).missing_software() is None)
    return next(installed, DEFAULT)


def engine_of_script(file: Path, variables: Mapping[str, str] = os.environ) -> EngineTraits:
    """The engine of a script, or of a task: one whose `script_modules` it imports, else the default.

    One that imports Keras or the default engine's framework too is the default's, unless
    KERAS_BACKEND says which engine it means.
    """
    default = engine_traits(DEFAULT)
    imported = imported_modules(file)
    keras = {package for requirement in default.requirements for package in requirement.packages}
    for name in engine_names():
        engine = engine_traits(name)
        if imported & set(engine.script_modules):
            other = bool(imported & keras) and variables.get("KERAS_BACKEND") != name
            return default if other else engine
    return default


def imported_modules(file: Path) -> set[str]:
    """Top-level names of all modules that a file imports, at whatever depth; none where it is no Python."""
    try:
        tree = ast.parse(contents(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def label_of(name: str) -> str:
    """An engine's for people; the name itself of one that is not installed here."""
    return engine_traits(name).label if name in REGISTRY else name


def package_labels() -> dict[str, str]:
    """What people call the packages that engines and their strategies need, by the packages' names."""
    labels: dict[str, str] = {}
    for engine in map(engine_traits, REGISTRY.names()):
        labels |= {package: needed.label for needed in engine.requirements for package in needed.packages}
        labels |= {library.name: library.label for library in engine.libraries}
    return labels


def collective(name: str) -> Collective:
    """The collective of this name, of whatever engine; raises KeyError."""
    return {collective.name: collective for collective in all_collectives()}[name]


def all_collectives() -> list[Collective]:
    """Those of all engines."""
    return [way for name in REGISTRY.names() for way in engine_traits(name).collectives]
