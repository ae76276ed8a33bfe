"""Full fine-tuning of a small protein language model (ESM-like) on a stability score."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import EsmConfig, EsmModel, get_cosine_schedule_with_warmup

device = 'cuda'
torch.manual_seed(0)


class Stability(nn.Module):
    def __init__(self):
        super().__init__()
        config = EsmConfig(
            vocab_size=33, mask_token_id=32, pad_token_id=1, hidden_size=1024, num_hidden_layers=20,
            num_attention_heads=16, intermediate_size=4096, max_position_embeddings=514,
            position_embedding_type='rotary', attn_implementation='sdpa')
        self.trunk = EsmModel(config, add_pooling_layer=False)
        self.score = nn.Sequential(nn.LayerNorm(1024), nn.Linear(1024, 1))

    def forward(self, ids):
        hidden = self.trunk(ids).last_hidden_state
        return self.score(hidden.mean(1)).squeeze(-1)


ids = torch.randint(4, 24, (96, 128))
target = torch.randn(96)
loader = DataLoader(TensorDataset(ids, target), batch_size=4, shuffle=True)

model = Stability().to(device)
decay = [p for n, p in model.named_parameters() if p.dim() > 1]
plain = [p for n, p in model.named_parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW(
    [{'params': decay, 'weight_decay': 0.01}, {'params': plain, 'weight_decay': 0.0}],
    lr=2e-5, betas=(0.9, 0.98), amsgrad=False)
schedule = get_cosine_schedule_with_warmup(optimizer, 5, 24)

for step, (tokens, wanted) in enumerate(loader):
    tokens, wanted = tokens.to(device), wanted.to(device)
    with torch.autocast('cuda', torch.bfloat16):
        loss = nn.functional.smooth_l1_loss(model(tokens).float(), wanted)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 6 == 0:
        print(f'{step} loss {loss.item():.4f} norm {norm.item():.2f} lr {schedule.get_last_lr()[0]:.2e}')
