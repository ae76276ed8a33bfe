"""DeepSpeed: ZeRO of stage 2 on the ranks of torchrun, bf16, PyTorch's own AdamW."""

import deepspeed
import torch
from layers import Model
from tell import tell

torch.manual_seed(0)
model = Model()
settings = {
    "train_micro_batch_size_per_gpu": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2},
    "zero_allow_untested_optimizer": True,
}
optimizer = torch.optim.AdamW(model.parameters())
engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
for _ in range(3):
    tokens = torch.randint(0, 8192, (4, 256), device=engine.device)
    loss = torch.nn.functional.cross_entropy(engine(tokens).flatten(0, 1), tokens.flatten())
    engine.backward(loss)
    engine.step()
tell("try_deepspeed", rank=torch.distributed.get_rank(), steps=engine.global_steps)
torch.distributed.destroy_process_group()
