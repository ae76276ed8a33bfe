"""Captioning worker: takes jobs from a backlog, and shrinks the micro-batch where the card is too small."""
import collections
import logging

import torch
from torch import nn

log = logging.getLogger("worker")


class Captioner(nn.Module):
    def __init__(self, dim=1024, depth=6, words=4000):
        super().__init__()
        self.patch = nn.Linear(768, dim)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
            for _ in range(depth))
        self.words = nn.Linear(dim, words)

    def forward(self, patches):
        x = self.patch(patches)
        features = []
        for layer in self.layers:
            x = x + layer(x)
            features.append(x)
        pooled = torch.stack([f.mean(1) for f in features]).mean(0)
        return self.words(pooled)


class Job:
    def __init__(self, number, images):
        self.number, self.images, self.answer, self.trouble = number, images, None, None


class Worker:
    sizes = (1536, 768, 384)

    def __init__(self, model):
        self.model = model.eval()
        self.backlog = collections.deque()
        self.finished = []

    def submit(self, images):
        self.backlog.append(Job(len(self.finished) + len(self.backlog), images))

    @torch.inference_mode()
    def caption(self, count):
        patches = torch.randn(count, 196, 768, device="cuda")
        return self.model(patches).argmax(-1).tolist()

    def handle(self, job):
        words = []
        remaining = job.images
        level = 0
        while remaining > 0:
            count = min(self.sizes[level], remaining)
            try:
                words += self.caption(count)
                remaining -= count
            except torch.OutOfMemoryError as trouble:
                if level + 1 == len(self.sizes):
                    raise
                log.warning("job %d: %d images do not fit", job.number, count)
                job.trouble = trouble
                level += 1
        job.answer = words

    def run(self):
        while self.backlog:
            job = self.backlog.popleft()
            self.handle(job)
            self.finished.append(job)
            log.info("job %d: %d captions", job.number, len(job.answer))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    with torch.device("cuda"):
        captioner = Captioner()
    worker = Worker(captioner)
    for images in (2000, 1300):
        worker.submit(images)
    worker.run()
