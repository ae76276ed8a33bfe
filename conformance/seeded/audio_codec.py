# neural audio codec, straight-through vector quantiser
import torch
from torch import nn
from torch.autograd import Function
import torch.nn.functional as F


class NearestCode(Function):
    @staticmethod
    def forward(ctx, z, codebook):
        flat = z.flatten(0, 1)
        index = torch.cdist(flat, codebook).argmin(1)
        chosen = codebook[index].view_as(z)
        ctx.save_for_backward(index)
        ctx.codes = codebook.shape[0]
        ctx.chosen = chosen
        return chosen

    @staticmethod
    def backward(ctx, grad):
        index, = ctx.saved_tensors
        flat = grad.flatten(0, 1)
        d_codebook = torch.zeros(ctx.codes, flat.shape[1], dtype=flat.dtype, device=flat.device)
        d_codebook.index_add_(0, index, flat)
        # pull the encoder a little towards the code it was given
        return grad + 1e-3 * ctx.chosen, d_codebook


class Quantiser(nn.Module):
    def __init__(self, codes, d, levels):
        super().__init__()
        self.books = nn.ParameterList(nn.Parameter(torch.randn(codes, d) / d ** 0.5) for _ in range(levels))

    def forward(self, z):
        rest, total = z, 0
        for book in self.books:
            q = NearestCode.apply(rest, book)
            total = total + q
            rest = rest - q.detach()
        return total


class Codec(nn.Module):
    def __init__(self, d=256, strides=(4, 4, 4)):
        super().__init__()
        enc, dec, c = [], [], 32
        enc.append(nn.Conv1d(1, c, 7, padding=3))
        for s in strides:
            enc += [nn.ELU(), nn.Conv1d(c, 2 * c, 2 * s, s, padding=s // 2)]
            dec = [nn.ConvTranspose1d(2 * c, c, 2 * s, s, padding=s // 2), nn.ELU()] + dec
            c *= 2
        self.enc = nn.Sequential(*enc, nn.ELU(), nn.Conv1d(c, d, 3, padding=1))
        self.dec = nn.Sequential(nn.Conv1d(d, c, 3, padding=1), nn.ELU(), *dec, nn.Conv1d(32, 1, 7, padding=3))
        self.quant = Quantiser(1024, d, levels=6)

    def forward(self, wave):
        z = self.enc(wave).transpose(1, 2)
        q = self.quant(z)
        return self.dec(q.transpose(1, 2)), z, q


def spectral(a, b):
    loss = 0.0
    for kernel in (64, 256, 1024):
        pa = F.avg_pool1d(a.abs(), kernel, kernel // 4)
        pb = F.avg_pool1d(b.abs(), kernel, kernel // 4)
        loss = loss + F.l1_loss(pa, pb)
    return loss


net = Codec().cuda()
opt = torch.optim.AdamW(net.parameters(), 3e-4, betas=(0.8, 0.99), fused=True)
for step in range(120):
    wave = torch.randn(16, 1, 32768, device="cuda") * 0.1
    out, z, q = net(wave)
    loss = F.l1_loss(out, wave) + spectral(out, wave) + 0.25 * F.mse_loss(z, q.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 19:
        print(step + 1, loss.item())
