# bird calls as mel pictures -> resnet50, mixed precision, one cycle
import time

import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
device = 'cuda'
CLASSES, BATCH, STEPS = 182, 32, 24


class Calls(Dataset):
    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        mel = torch.rand(1, 128, 256, generator=g).log1p()
        start = int(torch.randint(0, 200, (), generator=g))
        mel[:, :, start:start + 20] *= 0.1
        return mel.expand(3, -1, -1), int(torch.randint(0, CLASSES, (), generator=g))


class Valid(Calls):
    def __len__(self):
        return BATCH * 4


model = torchvision.models.resnet50(weights=None, num_classes=CLASSES)
model = model.to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=STEPS)
scaler = torch.amp.GradScaler('cuda')
train = DataLoader(Calls(), BATCH, shuffle=True, pin_memory=True)
valid = DataLoader(Valid(), BATCH)

started = time.time()
model.train()
running = 0.0
for step, (mel, label) in enumerate(train):
    mel = mel.to(device, memory_format=torch.channels_last, non_blocking=True)
    label = label.to(device, non_blocking=True)
    with torch.autocast('cuda', dtype=torch.float16):
        loss = F.cross_entropy(model(mel), label, label_smoothing=0.05)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    optimizer.zero_grad(set_to_none=True)
    running = 0.9 * running + 0.1 * loss.item()
    if step % 8 == 0:
        print(f'step {step} loss {running:.4f} {time.time() - started:.1f} s', flush=True)

model.eval()
hits = seen = 0
with torch.inference_mode(), torch.autocast('cuda', dtype=torch.float16):
    for mel, label in valid:
        guess = model(mel.to(device, memory_format=torch.channels_last)).argmax(1).cpu()
        hits += int((guess == label).sum())
        seen += len(label)
print(f'valid accuracy {hits / seen:.3f}')
