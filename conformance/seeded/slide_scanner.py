"""Pathology slides: tiles are read by one thread, embedded by the main one and written by another."""
import queue
import threading

import torch
from torch import nn
from torchvision.models import resnet18

SLIDES, TILES, STOP = 14, 2, None


class Reader(threading.Thread):
    def __init__(self, slides, out):
        super().__init__(daemon=True)
        self.slides, self.out = slides, out

    def run(self):
        for slide in range(self.slides):
            for tile in range(TILES):
                self.out.put((slide, tile, torch.full((1, 3, 8, 8), 0.5)))
        self.out.put(STOP)


class Writer(threading.Thread):
    def __init__(self, incoming):
        super().__init__(daemon=True)
        self.incoming, self.rows = incoming, {}

    def run(self):
        pending = []
        while (item := self.incoming.get()) is not STOP:
            pending.append(item)
        for slide, maps in pending:
            rows = maps.mean((2, 3)).cpu()
            self.rows.setdefault(slide, []).append(rows)


class Stem(nn.Module):
    def __init__(self):
        super().__init__()
        net = resnet18()
        self.body = nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2)

    def forward(self, tiles):
        return self.body(tiles)


def main():
    tiles, features = queue.Queue(maxsize=4), queue.Queue()
    reader, writer = Reader(SLIDES, tiles), Writer(features)
    with torch.device("cuda"):
        stem = Stem().eval()
    reader.start()
    writer.start()
    with torch.inference_mode():
        while (item := tiles.get()) is not STOP:
            slide, tile, thumbnail = item
            pixels = thumbnail.cuda().expand(64, -1, -1, -1)
            pixels = nn.functional.interpolate(pixels, size=(512, 512), mode="nearest")
            features.put((slide, stem(pixels)))
    features.put(STOP)
    reader.join()
    writer.join()
    print({slide: torch.cat(rows).shape for slide, rows in writer.rows.items()})


if __name__ == "__main__":
    main()
