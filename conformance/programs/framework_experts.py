"""A layer of experts of Megatron-core or DeepSpeed, alone in its process: framework_experts.py LAYER [by_hand]

LAYER: megatron, megatron_allgather, or deepspeed_K for the K best experts, whatever an expert can take.
by_hand: the program itself spreads the tokens evenly, by writing the choice where its routers get it.
"""
import os
import sys

import torch
from spread import spread_by_hand
from tell import tell

EXPERTS, HIDDEN, INNER, TOKENS, STEPS = 8, 512, 2048, 1024, 3


def megatron_layer(dispatcher):
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt.moe_module_specs import get_moe_module_spec
    from megatron.core.transformer.moe import moe_utils
    from megatron.core.transformer.moe.moe_layer import MoELayer
    from megatron.core.transformer.transformer_config import TransformerConfig
    if not hasattr(moe_utils, 'te_general_gemm'):
        moe_utils.te_general_gemm = None  # without Transformer Engine Megatron-core 0.16.1 has no such name, and asks for it
    torch.distributed.init_process_group('gloo', rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed(0)
    config = TransformerConfig(
        num_layers=1, hidden_size=HIDDEN, num_attention_heads=8, num_moe_experts=EXPERTS, moe_router_topk=2, ffn_hidden_size=INNER,
        moe_ffn_hidden_size=INNER, moe_token_dispatcher_type=dispatcher, add_bias_linear=False)
    spec = get_moe_module_spec(use_te=False, num_experts=EXPERTS, moe_grouped_gemm=False)
    return MoELayer(config, spec.submodules), (TOKENS, 1, HIDDEN)


def deepspeed_layer(k):
    import deepspeed
    from deepspeed.moe.layer import MoE
    deepspeed.init_distributed('gloo')
    expert = torch.nn.Sequential(torch.nn.Linear(HIDDEN, INNER), torch.nn.GELU(), torch.nn.Linear(INNER, HIDDEN))
    layer = MoE(HIDDEN, expert, num_experts=EXPERTS, k=k, drop_tokens=False)
    layer.set_deepspeed_parallelism()
    return layer, (1, TOKENS, HIDDEN)


def main():
    for name, value in {'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '29541', 'RANK': '0', 'WORLD_SIZE': '1', 'LOCAL_RANK': '0'}.items():
        os.environ.setdefault(name, value)
    framework, _, way = sys.argv[1].partition('_')
    if 'by_hand' in sys.argv:
        spread_by_hand(EXPERTS, int(way) if way.isdigit() else 2)
    torch.cuda.set_device(0)
    torch.manual_seed(0)
    layer, shape = deepspeed_layer(int(way)) if framework == 'deepspeed' else megatron_layer(way or 'alltoall')
    layer = layer.cuda()
    for _ in range(STEPS):
        layer(torch.randn(shape, device='cuda', requires_grad=True))[0].sum().backward()
        layer.zero_grad(set_to_none=True)
    tell('experts', layer=sys.argv[1])


if __name__ == '__main__':
    main()
