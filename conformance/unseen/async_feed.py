# loads and augments in a thread, so that the gpu never waits
import queue
import threading
import time
import torch
import torch.nn as nn

BATCH, STEPS = 128, 220


class Feeder(threading.Thread):
    def __init__(self, n_batches):
        super().__init__(daemon=True)
        self.q = queue.Queue()
        self.n = n_batches
        self.error = None

    def load(self):
        # decode jpegs ... (stands for it)
        return torch.empty(BATCH, 3, 256, 256, dtype=torch.uint8), torch.randint(0, 1000, (BATCH,))

    def run(self):
        try:
            for _ in range(self.n):
                img, lab = self.load()
                img = img.cuda(non_blocking=True).float().sub_(127.5).div_(127.5)
                self.q.put((img, lab.cuda(non_blocking=True)))
            self.q.put(None)
        except Exception as e:
            self.error = e
            self.q.put(None)

    def __iter__(self):
        while True:
            item = self.q.get()
            if item is None:
                if self.error is not None:
                    raise self.error
                return
            yield item


def conv(i, o, s):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def main():
    net = nn.Sequential(conv(3, 32, 2), conv(32, 64, 2), conv(64, 128, 2), conv(128, 256, 2),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000)).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True)
    feeder = Feeder(STEPS)
    feeder.start()
    t0 = time.time()
    for i, (x, y) in enumerate(feeder):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.02)        # ema, logging, checkpoint to s3
        if i % 50 == 0:
            print(f"it {i} loss {loss.item():.3f} {BATCH * (i + 1) / (time.time() - t0):.0f} img/s")
    print("finished")


if __name__ == "__main__":
    main()
