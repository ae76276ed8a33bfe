"""Optical flow over a sliding window of feature maps."""
import os

os.environ.setdefault("PYTORCH_ALLOC_CONF", "roundup_power2_divisions:2")

import collections

import torch
import torch.nn as nn

HEIGHT, WIDTH, CHANNELS, SPAN = 264, 512, 128, 38


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Conv2d(3, CHANNELS, 1)

    def forward(self, frame):
        return self.project(frame)


class FlowWindow:
    """The last SPAN frames, all of which are compared with the newest."""

    def __init__(self, span):
        self.maps = collections.deque(maxlen=span)

    def push(self, maps):
        self.maps.append(maps)

    def motion(self, points=64):
        newest = self.maps[-1].flatten(2)[0, :, :points]
        shifts = []
        for age, old in enumerate(reversed(self.maps)):
            likeness = newest.t() @ old.flatten(2)[0, :, :points * 4]
            shifts.append(likeness.argmax(1).float().mean() / (age + 1))
        return torch.stack(shifts).mean().item()


def camera(frames):
    for number in range(frames):
        yield torch.rand(1, 3, HEIGHT, WIDTH, device="cuda")


def run(frames=60):
    features = Features().cuda().eval()
    window = FlowWindow(SPAN)
    track = []
    with torch.inference_mode():
        for number, frame in enumerate(camera(frames)):
            window.push(features(frame))
            if number % 10 == 9:
                track.append(window.motion())
    return track


print(run())
