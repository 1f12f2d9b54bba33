"""The engines: what is known about each without importing its framework, for example on a login node.

A package adds an engine by an entry point in the group "scalestudy.engines" that names an `EngineTraits`.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from scalestudy.plugins.traits import Rendezvous, Traits
from scalestudy.util.errors import UserError
from scalestudy.util.registry import Registry
from scalestudy.util.syntax import find_imports, parse_or_none

# Quoted: the class is defined below.
ENGINES: "Registry[EngineTraits]" = Registry("scalestudy.engines")
DEFAULT = "tensorflow"


# A protocol, since `cluster`, which has the placement, imports this package.
class Process(Protocol):
    """A process among those of a run; a `Placement` implements it."""

    @property
    def rank(self) -> int:
        """Its index among all processes."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host of every process."""

    @property
    def port(self) -> int | None:
        """First of the run's ports on each node."""

    @property
    def source(self) -> str:
        """Where the placement comes from."""


@dataclass(frozen=True)
class Collective:
    """One way in which all ranks sum an array.

    Attributes:
        name: Name in checks, their reports and their options; unique among all engines.
        label: Name for people.
        strategy: The strategy whose processes sum in this way.
        repair: The most common repair.
        communication: Its value of `launch.communication`, if the strategy lets the study choose.
        device: "cpu" if it always sums in host memory, "gpu" if only between GPUs.
        built_with: Features with which the strategy's library must be built.
        launcher: `Placement.source` of the only launcher that it works with; "" for any. Such a launcher
            connects the ranks, once in the life of a process.
        also: Further values of `launch.communication` that select it, if it can be used.
        spare: Whether it is replaced by another collective if there are GPUs.
    """

    name: str
    label: str
    strategy: Traits
    repair: str
    communication: str | None = None
    device: Literal["cpu", "gpu"] | None = None
    built_with: tuple[str, ...] = ()
    launcher: str = ""
    also: tuple[str, ...] = ()
    spare: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """What a study that uses it needs: its communication, or the rendezvous of its processes."""
        need = self.communication
        if not need:
            need = str(self.rendezvous and self.rendezvous.name)
        return (need, *self.also)

    def of_use(self, *, gpu: bool) -> bool:
        """Whether runs can use it, on GPUs or on CPUs."""
        if gpu:
            return not self.spare
        return self.device != "gpu"

    @property
    def library(self) -> str | None:
        """Name of the library that it needs besides the engine."""
        return self.strategy.library

    @property
    def rendezvous(self) -> Rendezvous | None:
        """How the processes that sum with it find each other."""
        return self.strategy.rendezvous


class Requirement(NamedTuple):
    """A package that an engine needs, under any of these names; `versions` (PEP 440) were tested."""

    label: str
    packages: tuple[str, ...]
    versions: str


class StrategyLibrary(NamedTuple):
    """A library for some of an engine's strategies, which is built for one version of the framework.

    Attributes:
        name: Name of its package.
        label: Name for people.
        module: Module whose import loads it, with the framework.
        versions: PEP 440 specifier of the tested versions.
        repair: How to build it.
        repair_sums: How to build it with any support for sums (Gloo or MPI).
        repair_gpus: How to build it with sums between GPUs (NCCL).
    """

    name: str
    label: str
    module: str
    versions: str
    repair: str
    repair_sums: str
    repair_gpus: str


class EngineTraits:
    """What is known about an engine without importing its framework.

    The defaults suit a framework that needs nothing special.

    Attributes:
        name: Name in a study file.
        label: Name for people.
        implementation: "module:attribute" of its `engines.interface.Engine`.
        strategies: Its strategies, in the order in which they are shown.
        default_strategy: Strategy of a study that names none.
        across: The strategy with a process for each worker, which checks use; "" if there is none.
        model_suffixes: Suffixes of model files, one for each kind of model; records beside them end in
            ".json".
        export_forms: Suffix of each format that it exports models in; "" for a folder.
        requirements: Packages that it needs; the first is the framework, which limits the versions of the
            others.
        install: A sentence on how to install them.
        gpu_extra: Extra of this package that installs them for NVIDIA GPUs; "" if there is none.
        libraries: Libraries of its strategies.
        collectives: In the order in which they are tried; among those with one need, the preferred comes
            last.
        variables: Environment variables that affect how it computes and sums, which a run records.
        trial_module: Module that tries one of `collectives` in a separate process,
            and reports how libraries were built (see `engines.exchange_trial`); "" if there is none.
        unused: Packages that it only looks for: hidden while it is imported.
        script_modules: Modules whose import identifies a script or task of this engine.
        optimizers: Values of `train.optimizer` that it offers; empty for all.
        compiles: Whether `train.compile` compiles models; XLA belongs to strategies.
        script_session: "module:class" that measures a script in one process; "" if its scripts cannot be.
    """

    name: str
    label: str
    implementation: str
    default_strategy: str
    model_suffixes: tuple[str, ...]
    strategies: tuple[Traits, ...] = ()
    # Read-only, since all engines without a value of their own share it.
    export_forms: Mapping[str, str] = MappingProxyType({})
    across: str = ""
    requirements: tuple[Requirement, ...] = ()
    install: str = ""
    gpu_extra: str = ""
    libraries: tuple[StrategyLibrary, ...] = ()
    collectives: tuple[Collective, ...] = ()
    variables: tuple[str, ...] = ()
    trial_module: str = ""
    unused: tuple[str, ...] = ()
    script_modules: tuple[str, ...] = ()
    optimizers: tuple[str, ...] = ()
    script_session: str = ""
    compiles: bool = False

    def environment(
        self,
        variables: Mapping[str, str],
        *,
        gpus: bool,
        rendezvous: Rendezvous | None = None,
        process: Process | None = None,
        quiet: bool = False,
    ) -> Mapping[str, str | None]:
        """Variables for a process that imports the framework, besides `variables`; None unsets a variable.

        `rendezvous` is how its strategy's processes find each other, None for a single process; `process` is
        this process among them. If `quiet`, the last line of output is an answer, and the framework prints
        only errors.

        Raises:
            UserError: The process lacks something that the rendezvous needs.
        """
        return {}

    def missing_software(self, libraries: Collection[str] = ()) -> UserError | None:
        """An error if the framework, or any of these libraries of its strategies, is not installed here."""
        return None

    def versions(self) -> dict[str, str]:
        """Installed versions of the packages that affect how it computes, by name."""
        # Alternatives, such as tensorflow and tensorflow-cpu: those that are there.
        return installed_versions(self.packages)

    @property
    def packages(self) -> list[str]:
        """Names of the packages of its requirements and libraries."""
        names: list[str] = []
        for requirement in self.requirements:
            names += requirement.packages
        names += [library.name for library in self.libraries]
        return names

    def weights_folder(self, variables: Mapping[str, str]) -> str:
        """Folder in which the framework keeps downloaded pretrained weights; "" if there is none."""
        return ""

    @property
    def built(self) -> str:
        """The package that `build_id` describes."""
        return self.name

    def build_id(self) -> str:
        """Identifies builds of one version that compute differently; "" if there are none."""
        return ""

    def why_no_gpus(self, variables: Mapping[str, str]) -> tuple[str, str] | None:
        """The framework's own reason (a clause) why it uses no GPU, and what to do (a sentence).

        It is asked in a separate process with these variables, which may take as long as starting it.
        """
        return None

    def library(self, name: str) -> StrategyLibrary:
        """The library with this name; raises KeyError."""
        for library in self.libraries:
            if library.name == name:
                return library
        raise KeyError(name)

    def communications(self, strategy: str) -> tuple[str, ...]:
        """Values of `launch.communication` for a strategy that does the work; () if it has no choice."""
        values = []
        for way in self.collectives:
            if way.strategy.name == strategy and way.communication:
                values.append(way.communication)
        return tuple(values)


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of the installed packages among `packages`, by name."""
    versions = {}
    for package in packages:
        # By metadata: importing a package for its version would load the framework.
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def engine_traits(name: str) -> EngineTraits:
    """Traits of an engine; raises KeyError."""
    return ENGINES.get(name)


def engine_names() -> list[str]:
    """Names that a study file may give, in the order in which they are shown."""
    return ENGINES.names()


def installed_engine() -> str:
    """The first engine that is installed here; the default engine if none is."""
    for engine in ENGINES.items():
        if engine.missing_software() is None:
            return engine.name
    # On a login node no framework is installed, and studies are written there, too.
    return DEFAULT


def engine_of_script(
    file: Path, variables: Mapping[str, str] = os.environ
) -> EngineTraits:
    """The engine of a script or task: the one whose `script_modules` it imports, else the default.

    A file that also imports Keras or the default engine's framework belongs to the default engine, unless
    KERAS_BACKEND names the other engine.
    """
    return engine_traits(engine_of_imports(find_engines(file), variables))


def engine_of_imports(found: list[str], variables: Mapping[str, str]) -> str:
    """Name of that engine for a file that imports modules of these engines."""
    others = [name for name in found if name != DEFAULT]
    if not others:
        return DEFAULT
    # Keras is of the default engine, so a file may import it for another backend.
    backend = variables.get("KERAS_BACKEND")
    if DEFAULT in found and backend != others[0]:
        return DEFAULT
    return others[0]


def find_engines(file: Path) -> list[str]:
    """The engines whose modules a file imports; Keras is of the default one."""
    imported = find_packages(file)
    found = []
    for engine in ENGINES.items():
        modules = set(engine.script_modules)
        # Its packages, Keras among them, which a script for another engine may import, too.
        if engine.name == DEFAULT:
            modules = set()
            for needed in engine.requirements:
                modules.update(needed.packages)
        if imported & modules:
            found.append(engine.name)
    return found


def find_packages(file: Path) -> set[str]:
    """Top-level names of all modules that a file imports anywhere; empty if it is not valid Python."""
    tree = parse_or_none(file)
    if tree is None:
        return set()
    names = set()
    for name in find_imports(tree):
        names.add(name.partition(".")[0])
    return names


def label_of(name: str) -> str:
    """Label of an engine; its name if it is not installed here."""
    # A record may come from an installation with other packages.
    if name not in ENGINES:
        return name
    return engine_traits(name).label


def package_labels() -> dict[str, str]:
    """Labels of the packages that engines and their strategies need, by package name."""
    labels: dict[str, str] = {}
    for engine in ENGINES.items():
        for needed in engine.requirements:
            labels |= dict.fromkeys(needed.packages, needed.label)
        for library in engine.libraries:
            labels[library.name] = library.label
    return labels


def collective(name: str) -> Collective:
    """The collective of any engine with this name; raises KeyError."""
    for way in all_collectives():
        if way.name == name:
            return way
    raise KeyError(name)


def all_collectives() -> list[Collective]:
    """The collectives of all engines."""
    collectives: list[Collective] = []
    for engine in ENGINES.items():
        collectives += engine.collectives
    return collectives


def all_strategies() -> dict[str, Traits]:
    """The strategies of all engines, by name, in the order in which they are shown."""
    strategies = {}
    for engine in ENGINES.items():
        for row in engine.strategies:
            strategies[row.name] = row
    return strategies
