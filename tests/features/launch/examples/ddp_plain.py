"""A script for torchrun, as in PyTorch's tutorials. It records what it sees in a folder."""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
torch.manual_seed(rank)
model = DDP(torch.nn.Linear(4, 1))
model(torch.full((2, 4), float(rank + 1))).sum().backward()
names = [
    name
    for name in os.environ
    if name.startswith(("TORCHELASTIC_", "GROUP_", "ROLE_", "MASTER_"))
]
seen = {
    "rank": rank,
    "size": dist.get_world_size(),
    "local_rank": local_rank,
    "argv": sys.argv[1:],
    "gradient": model.module.weight.grad.tolist(),
    "elastic": dist.is_torchelastic_launched(),
    "variables": {
        name: os.environ[name]
        for name in [*names, "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS"]
    },
}
with open(os.path.join(sys.argv[1], f"{rank}.json"), "w") as file:
    json.dump(seen, file)
dist.destroy_process_group()
