"""Trains the flow policy, alone or under torchrun; `--before N` moves the global generator on, as another device would."""

import argparse
import os

import torch
from flow import FlowPolicy
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter


class Episodes(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        row = torch.randn(18, generator=random)
        return {"state": row[:12] + 0 * torch.rand(12), "actions": row[12:]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=int, default=0)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.manual_seed(0)
    model = FlowPolicy()
    if options.dropout:
        model.inner.insert(1, torch.nn.Dropout(options.dropout))
    if world > 1:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    data = Episodes()
    loader = DataLoader(data, 8, sampler=range(rank, 64, world), num_workers=options.workers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    writer = SummaryWriter("runs") if rank == 0 else None
    torch.rand(1 + options.before)
    for step, batch in zip(range(options.steps), loader, strict=False):
        optimizer.zero_grad()
        loss = model(batch)["loss"]
        loss.backward()
        optimizer.step()
        if writer:
            writer.add_scalar("train/loss", loss.detach(), step)
            writer.add_scalar("train/lr", 1e-2, step)
            print(f"step {step} loss {loss.detach():.4f}")
    if writer:
        writer.close()
    if world > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
