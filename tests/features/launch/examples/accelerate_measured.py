"""A plain loop prepared by Accelerate, as in its documentation."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

import scalestudy

workers = scalestudy.workers()
set_seed(workers.seed)
accelerator = Accelerator(cpu=True)
generator = torch.Generator().manual_seed(0)
x = torch.randn(500, 20, generator=generator)
y = (x[:, :10].sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=32)
model = torch.nn.Sequential(
    torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4 * len(train))
model, optimizer, train, test, schedule = accelerator.prepare(
    model, optimizer, train, test, schedule
)

for _ in workers.epochs(4, model):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        workers.count(len(inputs), loss)
    model.eval()
    right = total = 0
    for inputs, labels in test:
        with torch.no_grad():
            predicted = model(inputs).argmax(1)
        predicted, expected = accelerator.gather_for_metrics((predicted, labels))
        right += (predicted == expected).sum().item()
        total += len(expected)
    workers.quality("accuracy", right / total)
accelerator.end_training()
