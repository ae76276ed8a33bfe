"""DistributedDataParallel by torchrun: each of two ranks trains with a batch that is too large for its card."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
torch.manual_seed(0)
layers = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
model = DistributedDataParallel(nn.TransformerEncoder(layers, 8, enable_nested_tensor=False).cuda())
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.zeros(512, 256, 256))
loader = DataLoader(data, batch_size=64, sampler=DistributedSampler(data))
for step, (x,) in enumerate(loader, start=1):
    x = x.cuda()
    loss = F.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
