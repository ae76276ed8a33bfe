import logging
import logging.handlers

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("depth")


class SessionHandler(logging.Handler):
    """Holds what was logged so that a failed run can be written to a report."""

    def __init__(self, level=logging.DEBUG):
        super().__init__(level)
        self.session = []

    def emit(self, record):
        self.session.append(record)

    def write(self, path):
        with open(path, "w") as out:
            for record in self.session:
                out.write(self.format(record) + "\n")


def setup_logging():
    log.setLevel(logging.DEBUG)
    console = logging.StreamHandler()
    console.setLevel(logging.INFO)
    console.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(console)
    session = SessionHandler()
    log.addHandler(session)
    return session


class DepthNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256)):
        super().__init__()
        self.down, cin = nn.ModuleList(), 3
        for w in widths:
            self.down.append(nn.Sequential(nn.Conv2d(cin, w, 3, 2, 1), nn.ELU(), nn.Conv2d(w, w, 3, 1, 1), nn.ELU()))
            cin = w
        self.up = nn.ModuleList()
        for w in (128, 64, 32, 16):
            self.up.append(nn.Sequential(nn.Conv2d(cin, w, 3, 1, 1), nn.ELU()))
            cin = w
        self.disparity = nn.Conv2d(cin, 1, 3, 1, 1)

    def forward(self, x):
        for d in self.down:
            x = d(x)
        for u in self.up:
            x = F.interpolate(u(x), scale_factor=2, mode="bilinear", align_corners=False)
        return self.disparity(x).sigmoid()


def smoothness(disparity, image):
    gx = (disparity[..., 1:] - disparity[..., :-1]).abs()
    gy = (disparity[..., 1:, :] - disparity[..., :-1, :]).abs()
    ix = (image[..., 1:] - image[..., :-1]).abs().mean(1, keepdim=True)
    iy = (image[..., 1:, :] - image[..., :-1, :]).abs().mean(1, keepdim=True)
    return (gx * (-ix).exp()).mean() + (gy * (-iy).exp()).mean()


def main():
    session = setup_logging()
    model = DepthNet().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    try:
        for step in range(300):
            left = torch.rand(24, 3, 384, 1280, device="cuda")
            right = torch.rand(24, 3, 384, 1280, device="cuda")
            disparity = model(left)
            warped = torch.roll(right, 4, dims=-1) * disparity
            error = (warped - left).abs()
            loss = error.mean() + 1e-3 * smoothness(disparity, left)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.debug("step %d warped %s error %s", step, warped.detach(), error.detach())
            if step % 5 == 0:
                log.info("step %d loss %.4f", step, loss.item())
    finally:
        log.info("%d records", len(session.session))


if __name__ == "__main__":
    main()
