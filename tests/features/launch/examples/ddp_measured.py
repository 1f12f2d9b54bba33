"""A loop as in PyTorch's DistributedDataParallel tutorial, measured. An argument makes rank 1 fail."""

import os
import signal
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import scalestudy

workers = scalestudy.workers()
dist.init_process_group("gloo")
torch.manual_seed(workers.seed)
generator = torch.Generator().manual_seed(0)
x = torch.randn(500, 20, generator=generator)
y = (x[:, :10].sum(1) > 0).long()
train, test = TensorDataset(x[:400], y[:400]), TensorDataset(x[400:], y[400:])
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=16, sampler=sampler)
test_loader = DataLoader(
    test, batch_size=25, sampler=DistributedSampler(test, shuffle=False)
)
model = torch.nn.Sequential(
    torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
)
model = model if "alone" in sys.argv else DDP(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in workers.epochs(3, model):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        if epoch == 1 and workers.rank == 1 and "raise" in sys.argv:
            raise ValueError("sample 17 is broken")
        if epoch == 1 and workers.rank == 1 and "kill" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        workers.count(len(inputs), loss)
    with torch.no_grad():
        right = sum(
            (model(inputs).argmax(1) == labels).sum().item()
            for inputs, labels in test_loader
        )
    workers.quality("accuracy", right, len(test_loader.sampler))
dist.destroy_process_group()
