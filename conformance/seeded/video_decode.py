"""Video classification; frames are decoded by a native library with buffers of its own."""
import ctypes
import torch
from torch import nn
import torch.nn.functional as F
from note import at_failure
from loop import main


class NativeDecoder:
    def __init__(self, surfaces, size):
        self.lib = ctypes.CDLL(None)
        self.size, self.surfaces = size, []
        for _ in range(surfaces):
            p = ctypes.c_void_p()
            if self.lib.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)):
                raise RuntimeError("decoder: no surface")
            self.surfaces.append(p)

    def held(self):
        return len(self.surfaces) * self.size


def net3d(c=32):
    return nn.Sequential(nn.Conv3d(3, c, 3, 1, 1), nn.ReLU(), nn.Conv3d(c, 2 * c, 3, 2, 1), nn.ReLU(), nn.Conv3d(2 * c, 4 * c, 3, 2, 1),
                         nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4 * c, 400))


def kinetics(clips=16):
    net = net3d().cuda()
    decoder = NativeDecoder(40, 128 << 20)
    opt = torch.optim.SGD(net.parameters(), 0.01)
    with at_failure(decoder.held):
        for _ in range(3):
            x = torch.randn(clips, 3, 16, 112, 112, device="cuda")
            loss = F.cross_entropy(net(x), torch.zeros(clips, dtype=torch.long, device="cuda"))
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    main(globals())
