"""Ranking service: a captured graph for each size of batch."""
import bisect

import torch
from torch import nn

SIZES = [4096 * n for n in range(1, 9)]


class Ranker(nn.Module):
    def __init__(self, columns=512, width=4096, depth=6):
        super().__init__()
        self.enter = nn.Linear(columns, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.score = nn.Linear(width, 1)

    def forward(self, ads):
        x = self.enter(ads)
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.score(x).squeeze(1)


class Captured:
    def __init__(self, model, size, pool=None):
        self.ads = torch.zeros(size, 512, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(self.ads)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.empty_cache()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=pool):
            self.scores = model(self.ads)

    def __call__(self, ads):
        self.ads[:len(ads)].copy_(ads)
        self.graph.replay()
        return self.scores[:len(ads)].clone()


class Service:
    def __init__(self, model):
        self.model = model
        self.captured = {}

    def prepare(self):
        for size in reversed(SIZES):
            self.captured[size] = Captured(self.model, size)

    def rank(self, ads):
        size = SIZES[bisect.bisect_left(SIZES, len(ads))]
        return self.captured[size](ads).argsort(descending=True)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    with torch.device("cuda"):
        service = Service(Ranker().eval())
    service.prepare()
    for wanted in (100, 5000, 30000, 12000):
        print(wanted, service.rank(torch.randn(wanted, 512, device="cuda")).shape)
