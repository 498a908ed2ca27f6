"""A small flow-matching policy of the shape of openpi's and LingBot's: noise and flow time are drawn when none is given."""

import torch
from torch import nn


class FlowPolicy(nn.Module):
    def __init__(self, width=16, actions=6):
        super().__init__()
        self.context = nn.Linear(12, width)
        self.inner = nn.Sequential(nn.Linear(width + actions + 1, width), nn.GELU(), nn.Linear(width, actions))

    def sample_noise(self, shape, device):
        return torch.normal(mean=0.0, std=1.0, size=shape, dtype=torch.float32, device=device)

    def sample_time(self, count, device):
        alpha, beta = (torch.as_tensor(value, dtype=torch.float32, device=device) for value in (1.5, 1.0))
        return torch.distributions.Beta(alpha, beta).sample((count,)) * 0.999 + 0.001

    def forward(self, batch, noise=None, time=None):
        actions = batch["actions"]
        if noise is None:
            noise = self.sample_noise(actions.shape, actions.device)
        if time is None:
            time = self.sample_time(actions.shape[0], actions.device)
        at = time[:, None]
        mixed = at * noise + (1 - at) * actions
        seen = torch.cat([self.context(batch["state"]), mixed, at], dim=-1)
        return {"loss": ((self.inner(seen) - (noise - actions)) ** 2).mean()}
