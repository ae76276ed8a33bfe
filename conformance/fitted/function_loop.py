"""A training in functions of a file, with an argument for its batch, a scheduler and clipped gradients."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, norm_first=True), 6, enable_nested_tensor=False).cuda()


def train(batch_size):
    torch.manual_seed(0)
    model = build()
    loader = DataLoader(TensorDataset(torch.zeros(batch_size * 4, 256, 256)), batch_size=batch_size, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(loader))
    for step, (x,) in enumerate(loader, start=1):
        x = x.cuda()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    train(parser.parse_args().batch_size)
