"""A LightningModule and its Trainer, as in Lightning's documentation."""

import os

import lightning as L
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import scalestudy

workers = scalestudy.workers()


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        accuracy = (self.net(x).argmax(1) == y).float().mean()
        self.log("val_accuracy", accuracy, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


L.seed_everything(workers.seed)
generator = torch.Generator().manual_seed(0)
x = torch.randn(500, 20, generator=generator)
y = (x[:, :10].sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=25)
trainer = L.Trainer(
    max_epochs=4,
    accelerator="cpu",
    devices=int(os.environ["LOCAL_WORLD_SIZE"]),
    strategy="ddp",
    logger=False,
    enable_checkpointing=False,
    callbacks=[workers.lightning_callback("val_accuracy")],
)
trainer.fit(Model(), train, val)
