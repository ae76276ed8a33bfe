"""Whole slide images: train a patch encoder, pick prototypes, then encode the slide."""
import functools

import torch
from torch import nn

from note import at_failure, stranded

WIDTH = 1024


def make_encoder(depth=3):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU()]
    return nn.Sequential(*layers).cuda()


def train(encoder, steps, patches):
    opt = torch.optim.SGD(encoder.parameters(), lr=0.01)
    for step in range(steps):
        x = torch.rand(patches, WIDTH, device="cuda")
        loss = (encoder(x) - x).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        del x, loss


def pick_prototypes(encode, tiles, every=16):
    codes = []
    for _ in range(tiles):
        codes.append(encode(torch.rand(1024, WIDTH, device="cuda")))
    return codes[::every]


@torch.no_grad()
def run_encoder(x, encoder):
    return encoder(x)


encoder = make_encoder()
train(encoder, steps=5, patches=98304)
print("trained")
encode = functools.partial(run_encoder, encoder=encoder)
prototypes = pick_prototypes(encode, tiles=720)
print(len(prototypes), "prototypes")
for slide in range(2):
    with at_failure(stranded):
        tiles = torch.rand(196608, WIDTH, device="cuda")
        code = encode(tiles)
    del tiles, code
print("all slides encoded")
