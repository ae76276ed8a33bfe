import threading

import torch
import torch.nn as nn

from note import note


class ImageLogger:
    """Writes sample grids in the background, so that training never waits for the disk."""

    def __init__(self):
        self.workers = []
        self.epoch_done = threading.Event()
        self.written = 0
        self.lock = threading.Lock()

    def log(self, images, step):
        def work(batch, step):
            # write when the epoch is over: disk I/O slows the data loader
            self.epoch_done.wait()
            host = batch.cpu()
            with self.lock:
                self.written += host.shape[0]

        t = threading.Thread(target=work, args=(images, step), daemon=True)
        t.start()
        self.workers.append(t)
        note(len(self.workers) * images.nbytes)

    def flush(self):
        self.epoch_done.set()
        for t in self.workers:
            t.join()
        self.workers.clear()
        self.epoch_done.clear()


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64 * 16 * 16)
        self.net = nn.Sequential(nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(),
                                 nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, z):
        return self.net(self.fc(z).view(-1, 64, 16, 16))


decoder = Decoder().cuda()
encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * 128 * 128, 128)).cuda()
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
logger = ImageLogger()

for epoch in range(2):
    for step in range(75):
        x = torch.rand(512, 3, 128, 128, device="cuda")
        mu, logvar = encoder(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        recon = decoder(z)
        loss = (recon - x).square().mean() - 0.0005 * (1 + logvar - mu.square() - logvar.exp()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        logger.log(recon.detach(), step)
    logger.flush()
    print("epoch", epoch, "written", logger.written)
