"""PyTorch scripts whose workers do not share the work, by argument: "same" samples, or processes "apart"."""

import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

import scalestudy

workers = scalestudy.workers()
torch.manual_seed(workers.seed)
x = torch.randn(200, 20, generator=torch.Generator().manual_seed(0))
y = (x[:, :10].sum(1) > 0).long()
model = torch.nn.Linear(20, 2)
if sys.argv[1] == "same":
    dist.init_process_group("gloo")
    model = DDP(model)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in workers.epochs(2, model):
    for inputs, labels in loader:
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        workers.count(len(inputs), loss)
