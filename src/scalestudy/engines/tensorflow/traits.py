"""Properties of TensorFlow and its strategies that are known without importing TensorFlow."""

import importlib.util
import json
import os
import shlex
import sys
from collections.abc import Collection, Mapping
from types import MappingProxyType

from scalestudy.cluster.resolve import PROXIES
from scalestudy.engines.tensorflow import installation
from scalestudy.engines.tensorflow.installation import explain_missing_gpus, gpu_log
from scalestudy.plugins.engines import (
    Collective,
    EngineTraits,
    Process,
    Requirement,
    StrategyLibrary,
)
from scalestudy.plugins.traits import Rendezvous, Traits
from scalestudy.util.errors import UserError

TF_CONFIG = "TF_CONFIG"
NAME = "tensorflow"
PACKAGE = "scalestudy.engines.tensorflow"
LIBTPU = "libtpu"
"""The driver of a TPU, a package in the images of TPU hosts."""
BY_TF_CONFIG = Rendezvous("tf_config", unproxied=True, obeys=True)
"""TensorFlow's gRPC server listens on all interfaces, without authentication and without a setting for it."""
BY_SERVERS = Rendezvous("tf_servers", unproxied=True, obeys=True)
"""The same servers, with a coordinator and a parameter server in the process of rank 0."""
BY_HOROVOD = Rendezvous("horovod", secret=True)
"""Its rendezvous requires the run's secret and listens on one interface if the host's name determines it.
Gloo's data connections use one interface, without authentication."""

SINGLE = Traits(
    "single",
    "one worker, alone",
    NAME,
    most_workers=1,
    plain=True,
    join=f"{PACKAGE}.replicas:join_single",
    aliases=("onedevice",),
    starts_scripts=True,
    mark=("#6E7781", "diamond"),
)
NATIVE = Traits(
    "native",
    "TensorFlow's own: single, mirrored or multiworker, as the workers ask for",
    NAME,
    plain=True,
    spans_nodes=True,
    stands_for=("single", "mirrored", "multiworker"),
    summed_by="TensorFlow: rings or NCCL",
    mark=("#0072B2", "circle"),
)
MIRRORED = Traits(
    "mirrored",
    "TensorFlow's MirroredStrategy: the devices of one node, in one process",
    NAME,
    devices="per-worker",
    join=f"{PACKAGE}.distribute:join_mirrored",
    script_classes=("MirroredStrategy",),
    starts_scripts=True,
    summed_by="TensorFlow: rings in memory, or NCCL",
    join_line="strategy = MirroredStrategy(), and the model under strategy.scope()",
    mark=("#009E73", "square"),
)
CENTRAL_STORAGE = Traits(
    "central-storage",
    "TensorFlow's CentralStorageStrategy: the devices of one node, variables on its CPU",
    NAME,
    devices="per-worker",
    xla=False,
    join=f"{PACKAGE}.central_storage:join",
    script_classes=("CentralStorageStrategy",),
    summed_by="TensorFlow: copies to the CPU",
    mark=("#9900FF", "triangle-left"),
)
TPU = Traits(
    "tpu",
    "TensorFlow's TPUStrategy: the cores of a TPU host, in one process",
    NAME,
    devices="per-worker",
    library=LIBTPU,
    join=f"{PACKAGE}.tpu:join",
    script_classes=("TPUStrategy",),
    summed_by="TensorFlow: the TPU's own links",
    mark=("#6B8F2E", "arrow"),
)
MULTIWORKER = Traits(
    "multiworker",
    "TensorFlow's MultiWorkerMirroredStrategy: a process for each worker",
    NAME,
    processes="per-worker",
    spans_nodes=True,
    rendezvous=BY_TF_CONFIG,
    join=f"{PACKAGE}.distribute:join_multiworker",
    aliases=("mwms", "multiworkermirrored", "collectiveallreduce"),
    script_classes=("MultiWorkerMirroredStrategy", "CollectiveAllReduceStrategy"),
    starts_scripts=True,
    summed_by="TensorFlow: rings by gRPC, or NCCL",
    share_line="options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA",
    join_line="strategy = MultiWorkerMirroredStrategy(), and the model under strategy.scope()",
    mark=("#CC79A7", "triangle-up"),
)
HEXAGON = "M0,-1L0.87,-0.5L0.87,0.5L0,1L-0.87,0.5L-0.87,-0.5Z"
"""A shape as a path: Vega-Lite has no more names."""
PARAMETER_SERVER = Traits(
    "parameter-server",
    "TensorFlow's ParameterServerStrategy, asynchronous: each worker updates a server's weights by itself",
    NAME,
    processes="per-worker",
    spans_nodes=True,
    synchronous=False,
    serve=f"{PACKAGE}.parameter_server:serve",
    xla=False,
    rendezvous=BY_SERVERS,
    join=f"{PACKAGE}.parameter_server:join",
    aliases=("clustercoordinator",),
    script_classes=("ParameterServerStrategy",),
    summed_by="nothing: a server applies them one by one",
    mark=("#5B5BD6", HEXAGON),
)
HOROVOD = Traits(
    "horovod",
    "Horovod: a process for each worker, all-reduce by Gloo, NCCL or MPI",
    NAME,
    processes="per-worker",
    spans_nodes=True,
    rendezvous=BY_HOROVOD,
    library="horovod",
    compressions=("fp16",),
    join=f"{PACKAGE}.horovod:join",
    aliases=("hvd", "horovodrunner", "horovodrun", "horovodestimator"),
    starts_scripts=True,
    summed_by="Horovod: Gloo, NCCL or MPI",
    share_line="dataset.shard(hvd.size(), hvd.rank()) before shuffle and batch, or x[hvd.rank()::hvd.size()]",
    join_line="hvd.init() and hvd.DistributedOptimizer(optimizer)",
    mark=("#D55E00", "triangle-down"),
)
VIRTUAL = Traits(
    "virtual",
    "any number of workers, computed one after another on one device",
    NAME,
    timed=False,
    join=f"{PACKAGE}.replicas:join_virtual",
    mark=("#C08000", "cross"),
)

TCP = "See that the run's ports are open between these hosts, and that no proxy is set."
NCCL = "Try NCCL_SOCKET_IFNAME=IFACE, NCCL_IB_DISABLE=1 and NCCL_DEBUG=INFO (env in the site profile)."


RECORDED = """
    HOROVOD_AUTOTUNE HOROVOD_CACHE_CAPACITY HOROVOD_CONTROLLER HOROVOD_CPU_OPERATIONS HOROVOD_CROSS_RANK
    HOROVOD_CROSS_SIZE HOROVOD_CYCLE_TIME HOROVOD_DISABLE_GROUP_FUSION HOROVOD_FUSION_THRESHOLD
    HOROVOD_GLOO_IFACE HOROVOD_GLOO_TIMEOUT_SECONDS HOROVOD_GPU_OPERATIONS HOROVOD_HIERARCHICAL_ALLGATHER
    HOROVOD_HIERARCHICAL_ALLREDUCE HOROVOD_HOSTNAME HOROVOD_LOCAL_RANK HOROVOD_LOCAL_SIZE HOROVOD_LOG_LEVEL
    HOROVOD_NUM_NCCL_STREAMS HOROVOD_RANK HOROVOD_SIZE HOROVOD_STALL_CHECK_TIME_SECONDS
    HOROVOD_THREAD_AFFINITY KERAS_BACKEND KERAS_HOME TF_AUTOTUNE_THRESHOLD TF_CONFIG TF_CPP_MAX_VLOG_LEVEL
    TF_CPP_MIN_LOG_LEVEL TF_CUDNN_DETERMINISTIC TF_CUDNN_USE_AUTOTUNE TF_CUDNN_USE_FRONTEND
    TF_DETERMINISTIC_OPS TF_ENABLE_ONEDNN_OPTS TF_FORCE_GPU_ALLOW_GROWTH TF_GPU_ALLOCATOR
    TF_GPU_THREAD_COUNT TF_GPU_THREAD_MODE TF_NUM_INTEROP_THREADS TF_NUM_INTRAOP_THREADS
    TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT TF_XLA_FLAGS XLA_FLAGS
"""
"""Names of the variables of `EngineTraits.variables`."""


def tf_config(process: Process, *, served: bool = False) -> str:
    """Return TF_CONFIG for one process; the k-th process on a host, from 0, listens on `port + k`.

    With `served`, rank 0 is also the coordinator and the parameter server, on the next two ports of its host.

    Raises:
        UserError: If there is no port or a host is unknown.
    """
    hosts = process.hosts
    port = process.port
    rank = process.rank
    if port is None or not all(hosts):
        raise UserError(
            "the host and the port of every worker, which multi-worker training needs",
            f"hosts {list(hosts)}, port {port} (from {process.source})",
            "Start it with `scalestudy run`, or with a launcher that names its hosts.",
        )
    workers = [
        f"{host}:{port + hosts[:other].count(host)}" for other, host in enumerate(hosts)
    ]
    cluster = {"worker": workers}
    if served:
        # The workers of that host hold the ports before this one.
        free = port + hosts.count(hosts[0])
        cluster |= {"ps": [f"{hosts[0]}:{free}"], "chief": [f"{hosts[0]}:{free + 1}"]}
    return json.dumps({"cluster": cluster, "task": {"type": "worker", "index": rank}})


class TensorFlowTraits(EngineTraits):
    """The traits of TensorFlow."""

    name = NAME
    label = "TensorFlow"
    implementation = f"{PACKAGE}.engine:ENGINE"
    strategies = (
        SINGLE,
        NATIVE,
        MIRRORED,
        CENTRAL_STORAGE,
        TPU,
        MULTIWORKER,
        PARAMETER_SERVER,
        HOROVOD,
        VIRTUAL,
    )
    default_strategy = NATIVE.name
    across = MULTIWORKER.name
    model_suffixes = (".keras",)
    export_forms = MappingProxyType(
        {"keras": ".keras", "savedmodel": "", "onnx": ".onnx"}
    )
    requirements = (
        Requirement("TensorFlow", ("tensorflow", "tensorflow-cpu"), ">=2.21,<2.22"),
        Requirement("Keras", ("keras",), ">=3.12,<4"),
    )
    gpu_extra = "gpu"
    install = (
        "In the project's folder, run `pip install '.[cpu]'` or `pip install '.[gpu]'`."
    )
    libraries = (
        StrategyLibrary(
            "horovod",
            "Horovod",
            "horovod.tensorflow",
            "==0.28.*",
            "Build it against this TensorFlow (environments/build-horovod.sh).",
            "Build it with HOROVOD_WITH_GLOO=1.",
            "Build it with HOROVOD_GPU_OPERATIONS=NCCL; without NCCL, sums pass through the CPUs.",
        ),
    )
    collectives = (
        Collective("ring", "TensorFlow RING", MULTIWORKER, TCP, communication="ring"),
        Collective(
            "auto",
            "TensorFlow AUTO",
            MULTIWORKER,
            TCP,
            communication="auto",
            spare=True,
        ),
        Collective(
            "nccl",
            "TensorFlow NCCL",
            MULTIWORKER,
            NCCL,
            communication="nccl",
            device="gpu",
            also=("auto",),
        ),
        Collective(
            "horovod-gloo",
            "Horovod Gloo",
            HOROVOD,
            "Try HOROVOD_GLOO_IFACE=IFACE (env in the site profile).",
            device="cpu",
            built_with=("gloo",),
        ),
        Collective(
            "horovod-nccl",
            "Horovod NCCL",
            HOROVOD,
            NCCL,
            device="gpu",
            built_with=("gloo", "nccl"),
        ),
        Collective(
            "horovod-mpi",
            "Horovod MPI",
            HOROVOD,
            "Try HOROVOD_CONTROLLER=gloo (env in the site profile), with a Horovod that has Gloo.",
            built_with=("mpi",),
            launcher="openmpi",
        ),
    )
    variables = tuple(RECORDED.split())
    trial_module = f"{PACKAGE}.trial"
    script_session = f"{PACKAGE}.keras_script:KerasScript"
    unused = ("sklearn",)
    """Packages hidden while Keras is imported. It imports scikit-learn, if installed, for wrappers that no
    worker needs: hundreds of files, and a fifth of the CPU time of the import."""

    def environment(
        self,
        variables: Mapping[str, str],
        *,
        gpus: bool,
        rendezvous: Rendezvous | None = None,
        process: Process | None = None,
        quiet: bool = False,
    ) -> Mapping[str, str | None]:
        """Set log levels, Keras's backend, GPU options and TF_CONFIG; see `EngineTraits.environment`."""
        level = "2" if quiet else "1"  # errors only, or errors and warnings
        changes: dict[str, str | None] = {
            "KERAS_BACKEND": "tensorflow",
            "TF_CPP_MIN_LOG_LEVEL": variables.get("TF_CPP_MIN_LOG_LEVEL", level),
            # One that this process has inherited describes the workers of another run.
            TF_CONFIG: None,
        }
        if gpus:
            # By default TensorFlow takes nearly all memory of a GPU, which hides what the run needs.
            # With threads of their own, kernels do not wait for the threads that prepare the input.
            changes |= {
                "TF_FORCE_GPU_ALLOW_GROWTH": "true",
                "TF_GPU_THREAD_MODE": "gpu_private",
            }
        if rendezvous in (BY_TF_CONFIG, BY_SERVERS) and process is not None:
            # gRPC would send the workers' traffic to the proxy unless no_proxy names every node.
            changes |= dict.fromkeys(PROXIES)
            changes[TF_CONFIG] = tf_config(process, served=rendezvous == BY_SERVERS)
        return changes

    def missing_software(self, libraries: Collection[str] = ()) -> UserError | None:
        if importlib.util.find_spec("tensorflow") is None:
            return UserError(
                "TensorFlow in this environment",
                f"none in {sys.prefix}",
                self.install,
            )
        # Horovod is built for the frameworks that it finds: the package may be there without this library.
        if "horovod" in libraries and installation.library_file() is None:
            return UserError(
                "Horovod, which the horovod strategy needs",
                "a Horovod that was built without TensorFlow"
                if importlib.util.find_spec("horovod")
                else f"none in {sys.prefix}",
                "Build it into this environment, in the project's folder (needs a C++ compiler and cmake): "
                f"environments/build-horovod.sh {shlex.quote(sys.prefix)}",
            )
        if LIBTPU in libraries and importlib.util.find_spec(LIBTPU) is None:
            return UserError(
                "a TPU, which the tpu strategy needs",
                f"none: {LIBTPU}, its driver, is missing",
                "Run it on a TPU host with its TensorFlow, or use another strategy.",
            )
        return None

    def weights_folder(self, variables: Mapping[str, str]) -> str:
        return variables.get("KERAS_HOME", os.path.expanduser("~/.keras"))

    @property
    def built(self) -> str:
        return "horovod"

    def build_id(self) -> str:
        """Identify Horovod's build, since builds with Gloo, MPI or NCCL have the same version."""
        return installation.wheel() or installation.library_digest()

    def why_no_gpus(self, variables: Mapping[str, str]) -> tuple[str, str] | None:
        return explain_missing_gpus(gpu_log(variables))


ENGINE: EngineTraits = TensorFlowTraits()
