"""A program that logs through functions of its own, through wandb, and with what cannot be a number."""

import torch
import tracking
import wandb

run = wandb.init()
for step in range(3):
    tracking.Tracker().log_metrics({"loss": torch.tensor(1 / 3 + step), "note": "text"}, step=step)
    run.log({"grad_norm": 0.1, "loss": 1.0 / 7}, step=step + 10)
