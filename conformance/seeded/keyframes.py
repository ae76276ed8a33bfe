"""Visual odometry: descriptors of every frame, then a bundle adjustment over the keyframes."""
import torch
from torch import nn

FRAMES, POINTS, WIDTH, STRIDE = 2600, 300, 1024, 17


class Descriptor(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(128, WIDTH)

    def forward(self, patches):
        return torch.tanh_(self.lift(patches))


def video(frames):
    patches = torch.rand(POINTS, 128, device="cuda")
    for number in range(frames):
        yield patches


def describe(model):
    return [model(patches) for patches in video(FRAMES)]


def choose(descriptors):
    return descriptors[::STRIDE]


class Bundle:
    def __init__(self, keyframes, landmarks=640):
        self.keyframes = keyframes
        self.landmarks = landmarks

    def adjust(self, rounds=2):
        jacobian = torch.zeros(self.landmarks, 1024, 1024, device="cuda")
        for _ in range(rounds):
            for number, frame in enumerate(self.keyframes[:20]):
                jacobian[number, :POINTS].add_(frame)
        return jacobian[:, 0, 0].sum().item()


@torch.inference_mode()
def main():
    model = Descriptor().cuda().eval()
    keyframes = choose(describe(model))
    print(len(keyframes), "keyframes", Bundle(keyframes).adjust())


if __name__ == "__main__":
    main()
