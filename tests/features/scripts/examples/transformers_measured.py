"""The Trainer of transformers, as in its documentation."""

import sys

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

import scalestudy

workers = scalestudy.workers()
set_seed(workers.seed)
tokens = torch.randint(2, 20, (500, 8), generator=torch.Generator().manual_seed(0))
labels = (tokens[:, 0] > 10).long()
samples = [{"input_ids": row, "labels": label} for row, label in zip(tokens, labels, strict=True)]
config = BertConfig(
    vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=TrainingArguments(
        output_dir=sys.argv[1],
        num_train_epochs=4,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        eval_strategy="epoch",
        save_strategy="no",
        use_cpu=True,
        report_to=[],
    ),
    train_dataset=samples[:400],
    eval_dataset=samples[400:],
    compute_metrics=lambda given: {"accuracy": (given.predictions.argmax(1) == given.label_ids).mean()},
    callbacks=[workers.transformers_callback("eval_accuracy")],
)
trainer.train()
