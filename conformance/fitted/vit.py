"""A ViT of transformers in a plain loop over a DataLoader."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import ViTConfig, ViTForImageClassification

torch.manual_seed(0)
model = ViTForImageClassification(ViTConfig(hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536)).cuda()
model.train()
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.zeros(128, 3, 224, 224), torch.zeros(128, dtype=torch.long))
for step, (images, labels) in enumerate(DataLoader(data, batch_size=32), start=1):
    loss = model(pixel_values=images.cuda(), labels=labels.cuda()).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
