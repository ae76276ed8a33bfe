"""Training loops that keep the graph of older steps."""

import torch
from loop import images, labels, language_loss, main, tokens, update
from note import Growth
from torch import nn
from torch.nn import functional
from zoo import Decoder, ImageNet, mlp


def history_of_losses(width=512, depth=6, batch=8, length=512, steps=40):
    """A loss that is only watched is kept as a tensor."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    history, grown = [], Growth()
    for _ in range(steps):
        ids, unseen = tokens(batch, length), tokens(batch // 4, length)
        update(optimizer, language_loss(model(ids), ids))
        history.append(language_loss(model(unseen), unseen))
        grown.note()


def running_total(width=64, batch=32, size=64, steps=40):
    """The same by a sum, of an image net with two augmented views."""
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    total, grown = 0.0, Growth()
    for step in range(steps):
        pictures = images(batch, size)
        update(optimizer, functional.cross_entropy(model(pictures), labels(batch)))
        total += (model(pictures.flip(3)) - 1).pow(2).mean()
        grown.note()


def retained_graph(width=768, depth=4, batch=8, length=256, steps=40):
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    losses, grown = [], Growth()
    for _ in range(steps):
        ids = tokens(batch, length)
        loss = language_loss(model(ids), ids)
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
        grown.note()


def gan_losses(width=1024, batch=2048, steps=60):
    """The discriminator's graph is retained for the generator, and its losses are kept for a plot."""
    maker, judge = mlp(width, 5, inputs=128).cuda(), mlp(width, 5, outputs=1).cuda()
    of_maker, of_judge = (torch.optim.Adam(net.parameters(), lr=2e-4) for net in (maker, judge))
    curve, grown = [], Growth()
    for _ in range(steps):
        made = maker(torch.randn(batch, 128, device="cuda"))
        wrong = functional.softplus(judge(made)).mean() + functional.softplus(-judge(torch.randn_like(made))).mean()
        wrong.backward(retain_graph=True)
        of_judge.step()
        of_judge.zero_grad()
        update(of_maker, functional.softplus(-judge(made)).mean())
        curve.append(wrong)
        grown.note()


def endless_memory(width=1024, batch=512, length=16, steps=40):
    """A recurrent net carries its state from batch to batch without cutting it off."""
    cell, head = nn.GRUCell(width, width).cuda(), nn.Linear(width, width).cuda()
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
    state, grown = torch.zeros(batch, width, device="cuda"), Growth()
    for _ in range(steps):
        loss = 0.0
        for x in torch.randn(length, batch, width, device="cuda"):
            state = cell(x, state)
            loss = loss + (head(state) - x).pow(2).mean()
        loss.backward(retain_graph=True)
        optimizer.zero_grad()
        grown.note()


def log_probabilities(width=2048, batch=1024, steps=80):
    """A policy gradient keeps the log probability of every step for an update that never comes."""
    policy = mlp(width, 6, inputs=64, outputs=16).cuda()
    critic = mlp(width // 4, 3, inputs=64, outputs=1).cuda()
    optimizer = torch.optim.Adam(critic.parameters())
    saved, grown = [], Growth()
    for _ in range(steps):
        seen = torch.randn(batch, 64, device="cuda")
        chances = policy(seen).log_softmax(-1)
        saved.append(chances.mean(1))
        update(optimizer, (critic(seen).squeeze(1) - 1).pow(2).mean())
        grown.note()


if __name__ == "__main__":
    main(globals())
