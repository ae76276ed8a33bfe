"""Frame-wise phone recognition with accelerate."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset


class Utterances(Dataset):
    def __init__(self, n, frames, phones, seed):
        self.n, self.frames, self.phones, self.seed = n, frames, phones, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100_003 + i)
        return (torch.randn(self.frames, 80, generator=g),
                torch.randint(0, self.phones, (self.frames // 2,), generator=g))


class PhoneNet(nn.Module):
    def __init__(self, phones, width=512, layers=8):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(80, width, 5, 2, 2), nn.GELU())
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True, norm_first=True,
                                           activation='gelu')
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, phones)

    def forward(self, mel):
        x = self.front(mel.transpose(1, 2)).transpose(1, 2)
        return self.head(self.body(x))


class Session:
    def __init__(self, opt):
        self.acc = Accelerator()
        self.opt = opt
        model = PhoneNet(opt.phones)
        optimizer = torch.optim.AdamW(model.parameters(), lr=opt.lr)
        train = DataLoader(Utterances(opt.batch * 12, 640, opt.phones, 1), opt.batch, shuffle=True)
        dev = DataLoader(Utterances(opt.batch * 20, 800, opt.phones, 2), opt.batch)
        self.model, self.optimizer, self.train_loader, self.dev_loader = self.acc.prepare(
            model, optimizer, train, dev)

    def loss(self, mel, phones):
        logits = self.model(mel)
        return F.cross_entropy(logits.flatten(0, 1), phones.flatten()), logits

    def train_epoch(self):
        self.model.train()
        for mel, phones in self.train_loader:
            loss, _ = self.loss(mel, phones)
            self.acc.backward(loss)
            self.acc.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.optimizer.zero_grad()

    def dev_epoch(self):
        self.model.eval()
        total, hits, frames = 0.0, 0, 0
        for mel, phones in self.dev_loader:
            loss, logits = self.loss(mel, phones)
            total += loss * phones.numel()
            hits += (logits.argmax(-1) == phones).sum()
            frames += phones.numel()
        return float(total) / frames, float(hits) / frames

    def run(self):
        for epoch in range(self.opt.epochs):
            self.train_epoch()
            loss, accuracy = self.dev_epoch()
            self.acc.print(f'epoch {epoch}: dev loss {loss:.4f}, frame accuracy {accuracy:.3f}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--phones', type=int, default=61)
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--lr', type=float, default=2e-4)
    Session(parser.parse_args()).run()
