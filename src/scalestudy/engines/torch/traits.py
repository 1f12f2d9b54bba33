"""Properties of PyTorch and its strategies that are known without importing PyTorch."""

import importlib.util
import sys
from collections.abc import Collection, Mapping
from types import MappingProxyType

from scalestudy.plugins.engines import Collective, EngineTraits, Process, Requirement
from scalestudy.plugins.traits import Rendezvous, Traits
from scalestudy.util.errors import UserError

NAME = "torch"
GROUP = "scalestudy.engines.torch.group"
BY_STORE = Rendezvous("tcpstore")
"""PyTorch's TCPStore listens on one interface if the host's name determines it, without authentication."""

STAR = "M0,-1.15L0.29,-0.40L1.09,-0.36L0.48,0.15L0.68,0.93L0,0.50L-0.68,0.93L-0.48,0.15L-1.09,-0.36L-0.29,-0.40Z"
X = "M-1,-0.55L-0.55,-1L0,-0.45L0.55,-1L1,-0.55L0.45,0L1,0.55L0.55,1L0,0.45L-0.55,1L-1,0.55L-0.45,0Z"
"""Marks for charts, as visible as the others; Vega's remaining named shapes are thin or have no area."""

JOINING = (
    "accelerate",
    "lightning",
    "pytorch_lightning",
    "deepspeed",
    "ignite",
    "horovod",
    "LightningCLI",
)
"""Packages, and a class, that join the processes of a script by themselves."""

DDP = Traits(
    "ddp",
    "PyTorch: a process for each worker, all-reduce by Gloo or NCCL",
    NAME,
    processes="per-worker",
    spans_nodes=True,
    plain=True,
    rendezvous=BY_STORE,
    compressions=("fp16", "bf16"),
    join=f"{GROUP}:join_ddp",
    aliases=(
        "torch",
        "torchrun",
        "distributeddataparallel",
        "ddpspawn",
        "dataparallel",
    ),
    starts_scripts=True,
    share_line="DataLoader(train, sampler=DistributedSampler(train))",
    join_line="dist.init_process_group() and model = DistributedDataParallel(model)",
    joined_by=(
        "init_process_group",
        "init_device_mesh",
        "Accelerator",
        "Fabric",
        "Trainer",
        *JOINING,
    ),
    mark=("#1793B5", "triangle-right"),
    xla=False,
    summed_by="torch.distributed: Gloo or NCCL",
)
TORCH_SINGLE = Traits(
    "torch-single",
    "PyTorch: one worker, alone",
    NAME,
    most_workers=1,
    plain=True,
    join=f"{GROUP}:join_single",
    mark=("#9A6324", STAR),
    xla=False,
)
TORCH_VIRTUAL = Traits(
    "torch-virtual",
    "PyTorch: any number of workers, computed one after another on one device",
    NAME,
    timed=False,
    join=f"{GROUP}:join_virtual",
    mark=("#8E4FB0", X),
    xla=False,
)


RECORDED = """
    CUBLAS_WORKSPACE_CONFIG GLOO_SOCKET_IFNAME KERAS_BACKEND KERAS_HOME KERAS_TORCH_DEVICE KMP_AFFINITY
    OMP_NUM_THREADS PYTORCH_CUDA_ALLOC_CONF TORCH_CPP_LOG_LEVEL TORCH_NCCL_ASYNC_ERROR_HANDLING
"""
"""Names of the variables of `EngineTraits.variables`."""


class TorchTraits(EngineTraits):
    """The traits of PyTorch."""

    name = NAME
    label = "PyTorch"
    implementation = "scalestudy.engines.torch.engine:ENGINE"
    strategies = (DDP, TORCH_SINGLE, TORCH_VIRTUAL)
    default_strategy = DDP.name
    across = DDP.name
    optimizers = ("sgd", "momentum", "nesterov", "adam", "adamw")
    compiles = True
    model_suffixes = (".keras", ".pt")
    export_forms = MappingProxyType({"keras": ".keras", "pt2": ".pt2", "onnx": ".onnx"})
    requirements = (
        Requirement("PyTorch", ("torch",), ">=2.9,<2.14"),
        Requirement("Keras", ("keras",), ">=3.12,<4"),
    )
    gpu_extra = "torch"
    install = (
        "In the project's folder, run `pip install '.[torch]'` (`make setup TORCH=1`), or name an environment"
        " that has it: environments under [launch]."
    )
    collectives = (
        Collective(
            "torch-gloo",
            "PyTorch Gloo",
            DDP,
            "Try GLOO_SOCKET_IFNAME=IFACE (env in the site profile).",
            device="cpu",
        ),
        Collective(
            "torch-nccl",
            "PyTorch NCCL",
            DDP,
            "Try NCCL_SOCKET_IFNAME=IFACE, NCCL_IB_DISABLE=1 and NCCL_DEBUG=INFO (env in the site profile).",
            device="gpu",
        ),
    )
    trial_module = "scalestudy.engines.torch.trial"
    variables = tuple(RECORDED.split())
    unused = ("sklearn",)
    """Packages that Keras imports only if they are installed; see `TensorFlowTraits.unused`."""
    script_session = "scalestudy.engines.torch.script:TorchScript"
    script_modules = (
        "torch",
        "accelerate",
        "lightning",
        "pytorch_lightning",
        "transformers",
    )

    def environment(
        self,
        variables: Mapping[str, str],
        *,
        gpus: bool,
        rendezvous: Rendezvous | None = None,
        process: Process | None = None,
        quiet: bool = False,
    ) -> Mapping[str, str | None]:
        """Set Keras's backend and device, and the workspace that cuBLAS needs for determinism."""
        changes: dict[str, str | None] = {
            "KERAS_BACKEND": "torch",
            "KERAS_TORCH_DEVICE": "cuda:0" if gpus else "cpu",
            "TORCH_CPP_LOG_LEVEL": variables.get(
                "TORCH_CPP_LOG_LEVEL",
                "ERROR",
            ),  # TCPStore warns of host names
        }
        if gpus:
            # cuBLAS repeats its sums bit for bit only with a workspace of fixed size.
            changes["CUBLAS_WORKSPACE_CONFIG"] = variables.get(
                "CUBLAS_WORKSPACE_CONFIG",
                ":4096:8",
            )
        return changes

    def missing_software(self, libraries: Collection[str] = ()) -> UserError | None:
        # Looked for and not imported: commands that only plan must not wait for a framework.
        if importlib.util.find_spec("torch") is not None:
            return None
        return UserError(
            "PyTorch in this environment",
            f"none in {sys.prefix}",
            self.install,
        )


ENGINE: EngineTraits = TorchTraits()
