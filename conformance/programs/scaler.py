"""fp16 with a GradScaler: whether a step is skipped hangs on a flag that a kernel writes."""

import torch
from layers import Model
from tell import tell

torch.manual_seed(0)
model = Model(depth=2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", growth_interval=2)
for _ in range(4):
    tokens = torch.randint(0, 8192, (4, 256)).cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
tell("scaler", scale=scaler.get_scale())
