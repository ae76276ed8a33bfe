import queue
import threading

import torch
import torch.nn as nn


class Reader:
    def __init__(self, count, batch, size):
        self.count, self.batch, self.size = count, batch, size

    def __iter__(self):
        for _ in range(self.count):
            yield torch.empty(self.batch, 3, self.size, self.size), torch.zeros(self.batch, dtype=torch.long)


class Prefetcher:
    """Moves batches to the device in a thread, ahead of the training loop."""

    def __init__(self, source, device):
        self.source, self.device = source, device
        self.ready = queue.Queue()
        self.failure = None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        try:
            for images, labels in self.source:
                self.ready.put((images.to(self.device), labels.to(self.device)))
        except RuntimeError as error:
            self.failure = error
        self.ready.put(None)

    def __iter__(self):
        while True:
            item = self.ready.get()
            if self.failure is not None:
                raise self.failure
            if item is None:
                return
            yield item


def make_model(classes=100):
    layers, cin = [], 3
    for cout in (64, 128, 256, 512):
        for stride in (2, 1, 1):
            layers += [nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.SiLU()]
            cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, classes))


def train(epochs=2):
    device = torch.device("cuda")
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        batches = Prefetcher(Reader(count=400, batch=16, size=512), device)
        for step, (images, labels) in enumerate(batches):
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 2 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    train()
