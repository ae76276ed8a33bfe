import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(13)
MASK, IGNORE = 4, -100


def corrupt(ids, rate=0.15):
    masked = torch.rand(ids.shape, device=ids.device) < rate
    return ids.masked_fill(masked, MASK), ids.masked_fill(~masked, IGNORE)


cfg = BertConfig(vocab_size=30_000, hidden_size=1280, num_hidden_layers=28, num_attention_heads=20,
                 intermediate_size=5120, max_position_embeddings=512)
with torch.device("cuda"):
    net = BertForMaskedLM(cfg)
net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
net.train()

groups = [{"params": [p for n, p in net.named_parameters() if "bias" in n or "LayerNorm" in n], "weight_decay": 0.0},
          {"params": [p for n, p in net.named_parameters() if "bias" not in n and "LayerNorm" not in n], "weight_decay": 0.01}]
opt = torch.optim.AdamW(groups, lr=1e-4, fused=True)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 100))

tokens = torch.randint(5, cfg.vocab_size, (64, 128))
data = DataLoader(TensorDataset(tokens), batch_size=8, shuffle=True, pin_memory=False)

print(f"{net.num_parameters() / 1e6:.0f} M parameters")
for epoch in range(2):
    running = 0.0
    for (ids,) in data:
        ids = ids.cuda()
        inputs, labels = corrupt(ids)
        loss = net(input_ids=inputs, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        opt.zero_grad(set_to_none=True)
        running += loss.item()
    print("epoch", epoch, running / len(data))
