import os
import tempfile

import torch
import torch.nn as nn

from note import note, size_of

CKPT = os.path.join(tempfile.gettempdir(), "ashlar_seeded_resume_%d.pt" % os.getpid())


def make():
    with torch.device("cuda"):
        model = nn.Sequential(nn.Embedding(20000, 2048), *[nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(27)],
                              nn.Linear(2048, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer


def one_step(model, optimizer):
    ids = torch.randint(0, 20000, (64,)).cuda()
    loss = model(ids).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def first_run():
    model, optimizer = make()
    one_step(model, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, CKPT)


def resume():
    model, optimizer = make()
    state = torch.load(CKPT, map_location="cuda")
    note(size_of(list(state["model"].values())))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    for epoch in range(state["epoch"], 4):
        for _ in range(5):
            one_step(model, optimizer)
        print("epoch", epoch)


try:
    first_run()
    torch.cuda.empty_cache()
    resume()
finally:
    if os.path.exists(CKPT):
        os.remove(CKPT)
