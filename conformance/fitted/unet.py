"""A UNet of diffusers that learns to remove noise, in a plain loop."""

import torch
import torch.nn.functional as F
from diffusers import DDPMScheduler, UNet2DModel
from torch.utils.data import DataLoader

torch.manual_seed(0)
model = UNet2DModel(sample_size=64, block_out_channels=(64, 128, 256), layers_per_block=2,
                    down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D"),
                    up_block_types=("AttnUpBlock2D", "UpBlock2D", "UpBlock2D")).cuda()
schedule = DDPMScheduler(num_train_timesteps=1000)
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader([torch.zeros(3, 64, 64) for _ in range(64)], batch_size=16)
model.train()
for step, clean in enumerate(loader, start=1):
    clean = clean.cuda()
    noise = torch.randn_like(clean)
    times = torch.randint(0, 1000, (len(clean),), device="cuda")
    loss = F.mse_loss(model(schedule.add_noise(clean, noise, times), times).sample, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
