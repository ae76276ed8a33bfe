"""Language model on documents of their own lengths, one batch one length."""
import random
import torch
from loop import main, tokens, train_step
from zoo import Decoder


def documents(n, low, high, seed=3):
    pick = random.Random(seed)
    return [pick.randrange(low, high) for _ in range(n)]


def read_all(n=40, low=200, high=1400, ordered=0):
    net = Decoder(width=512, depth=6, vocabulary=12000).cuda()
    opt = torch.optim.AdamW(net.parameters(), 3e-4)
    lengths = documents(n, low, high)
    if ordered:
        lengths.sort()
    for length in lengths:
        train_step(net, opt, tokens(8, length, 12000))


if __name__ == "__main__":
    main(globals())
