"""A small mixture of experts of transformers, made from a config: experts.py MODEL [by_hand] [recompute]

by_hand: the program itself spreads the tokens evenly, by writing the choice where its routers get it.
"""
import sys

import torch
import transformers
from spread import spread_by_hand
from tell import tell

TOKENS, STEPS = 256, 3
SMALL = {'hidden_size': 256, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'vocab_size': 512,
         'head_dim': 64, 'num_experts_per_tok': 2, 'intermediate_size': 1024, 'moe_intermediate_size': 1024}
WAYS = {'mixtral': ('Mixtral', {'num_local_experts': 8}),
        'qwen2_moe': ('Qwen2Moe', {'num_experts': 8, 'shared_expert_intermediate_size': 512}),
        'qwen3_moe': ('Qwen3Moe', {'num_experts': 8}),
        'olmoe': ('Olmoe', {'num_experts': 8}),
        'deepseek_v3': ('DeepseekV3', {'n_routed_experts': 8, 'n_group': 2, 'topk_group': 1, 'first_k_dense_replace': 0,
                                       'head_dim': 32, 'q_lora_rank': 64, 'kv_lora_rank': 64, 'qk_rope_head_dim': 32,
                                       'qk_nope_head_dim': 32, 'v_head_dim': 64})}


def main():
    name, keys = WAYS[sys.argv[1]]
    if 'by_hand' in sys.argv:
        spread_by_hand(8, SMALL['num_experts_per_tok'])
    config = getattr(transformers, name + 'Config')(**{**SMALL, **keys})
    torch.manual_seed(0)
    model = getattr(transformers, name + 'ForCausalLM')(config).cuda()
    if 'recompute' in sys.argv:
        model.gradient_checkpointing_enable()
        model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        words = torch.zeros(1, TOKENS, dtype=torch.long, device='cuda')
        model(words, labels=words).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    tell('experts', model=name)


if __name__ == '__main__':
    main()
