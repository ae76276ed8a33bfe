import torch
import torch.nn as nn
from transformers import ViTConfig, ViTForImageClassification

from note import Growth


class Args:
    per_device_batch = 16
    accumulation = 16
    optimizer_steps = 3
    lr = 1e-4


args = Args()
config = ViTConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, image_size=160,
                   patch_size=8, num_labels=100)
model = ViTForImageClassification(config).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
model.train()
grown = Growth()

for step in range(args.optimizer_steps):
    accumulated = 0
    for micro in range(args.accumulation):
        pixels = torch.randn(args.per_device_batch, 3, 160, 160, device="cuda")
        labels = torch.randint(0, 100, (args.per_device_batch,)).to("cuda")
        loss = criterion(model(pixel_values=pixels).logits, labels)
        accumulated = accumulated + loss / args.accumulation
        grown.note()
    accumulated.backward()
    opt.step()
    opt.zero_grad()
    print("step", step)
