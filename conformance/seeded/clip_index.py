"""Embeds video clips and writes shards of features from a background thread."""
import os
import queue
import tempfile
import threading

import torch
from torch import nn
import torch.nn.functional as F


class R3D(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        chans = [3, width, 2 * width, 4 * width]
        self.convs = nn.ModuleList(nn.Conv3d(a, b, 3, stride=2, padding=1) for a, b in zip(chans, chans[1:]))
        self.proj = nn.Conv3d(chans[-1], 512, 1)

    def forward(self, clip):
        x = clip
        for conv in self.convs:
            x = F.relu(conv(x))
        return self.proj(x)


class ShardWriter(threading.Thread):
    def __init__(self, folder, rows_per_shard=8192):
        super().__init__(name="shard-writer", daemon=True)
        self.folder, self.rows_per_shard = folder, rows_per_shard
        self.inbox = queue.Queue(maxsize=4)
        self.rows, self.names, self.shards = [], [], 0

    def run(self):
        while True:
            item = self.inbox.get()
            if item is None:
                break
            name, maps = item
            self.rows.append(maps)
            self.names.append(name)
            if sum(r.shape[0] for r in self.rows) >= self.rows_per_shard:
                self.write()
        if self.rows:
            self.write()

    def write(self):
        pooled = torch.cat([r.float().mean((2, 3, 4)).cpu() for r in self.rows])
        torch.save({"names": self.names, "features": pooled}, os.path.join(self.folder, f"{self.shards:05d}.pt"))
        self.rows, self.names = [], []
        self.shards += 1

    def close(self):
        self.inbox.put(None)
        self.join()


def clips(n, batch):
    for i in range(n):
        yield f"clip-{i:06d}", torch.rand(batch, 3, 16, 112, 112, device="cuda")


def build_index(folder, n=280):
    net = R3D().cuda().eval()
    writer = ShardWriter(folder)
    writer.start()
    done = 0
    with torch.inference_mode():
        for name, clip in clips(n, 24):
            with torch.autocast("cuda", torch.float16):
                maps = net(clip)
            writer.inbox.put((name, maps.float()))
            done += len(clip)
            if done % 960 == 0:
                print("embedded", done)
    writer.close()
    return writer.shards


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("shards", build_index(folder))
