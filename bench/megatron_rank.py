#!/usr/bin/env python3
"""One rank of many that train a model by Megatron-core, in one process: its own GPT model, pipeline schedules, recomputation and
optimizer. The other ranks are PyTorch's fake process group: what they send is never written, so it runs without a GPU.

    ashlar dry-run --device A100-80GB -o vr.ashlar -- python bench/megatron_rank.py llama VR
    ashlar plan vr.ashlar -o vr.plan --repeats

Needs megatron-core (tried with 0.16.1), neither Transformer Engine nor apex. Models, batches and cases, on eight GPUs, are those of
STAlloc's published scripts (github.com/infinigence/STAlloc, example/). Attention and Adam are PyTorch's fused ones, where those
took flash-attn's and apex's. Under torchrun, eight ranks of a model without experts have NCCL's groups, and the same peaks. The
last line has the peaks of what was allocated and reserved.
"""

import argparse
import functools
import os

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.testing._internal.distributed import fake_pg  # registers the backend "fake"

from megatron.core import optimizer as optimizers
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.dot_product_attention import DotProductAttention
from megatron.core.transformer.module import Float16Module
from megatron.core.transformer.moe import moe_layer, moe_utils, token_dispatcher
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules, get_num_layers_to_build
from megatron.core.transformer.transformer_config import TransformerConfig

WORLD = 8
MODELS = {  # `batch`: sequences of a microbatch, `sequences`: of a step
    "gpt2": dict(layers=24, hidden=1024, heads=16, inner=4096, words=50304, length=1024, batch=128, sequences=1024),
    "llama": dict(layers=32, hidden=4096, heads=32, inner=11008, words=32000, length=4096, batch=4, sequences=128),
    "qwen": dict(layers=24, hidden=2048, heads=16, inner=1408, words=151936, length=4096, batch=8, sequences=128),
}
STAGES = 2
CASES = {  # V: virtual stages of two layers; R: activations recomputed; Z: optimizer shared by ranks; O: optimizer on the host
    "naive": dict(tensor=4),
    "V": dict(tensor=4, is_virtual=True),
    "R": dict(tensor=4, recomputes=True),
    "VR": dict(tensor=4, is_virtual=True, recomputes=True),
    "ZR": dict(tensor=2, recomputes=True, shares_optimizer=True),
    "ZOR": dict(tensor=2, recomputes=True, shares_optimizer=True, optimizer_on_host=True),
}
EXPERTS, CHOSEN, SHARED = 60, 4, 4  # of qwen, which always shares the optimizer


class FusedAttention(DotProductAttention):
    """Scores are never held; q, k and v are laid out anew, sequence by sequence, as flash-attn wants them."""

    def forward(self, query, key, value, *_args, **_named):
        q, k, v = (x.transpose(0, 1).contiguous().transpose(1, 2) for x in (query, key, value))
        dropout = self.attention_dropout.p if self.training else 0.0
        out = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return out.permute(2, 0, 1, 3).contiguous().flatten(2)


class Norm(torch.nn.Module):
    """With neither Transformer Engine nor apex Megatron-core has none that knows sequence parallelism. Root mean squares as
    Megatron's legacy models, in steps; the layer's norm by PyTorch's kernel."""

    def __init__(self, config, hidden_size, eps=1e-5):
        super().__init__()
        self.of = (hidden_size,)
        self.eps, self.is_rms = eps, config.normalization == "RMSNorm"
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, dtype=config.params_dtype))
        self.weight.sequence_parallel = config.sequence_parallel
        if not self.is_rms:
            self.bias = torch.nn.Parameter(torch.zeros(hidden_size, dtype=config.params_dtype))
            self.bias.sequence_parallel = config.sequence_parallel

    def forward(self, x):
        if not self.is_rms:
            return functional.layer_norm(x, self.of, self.weight, self.bias, self.eps)
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


class Routing:
    """Which experts each token goes to. No kernel computes it here, and how large the experts' blocks are depends on it: it is drawn
    on the host. The generator is the host's usual one, which Megatron sets back before it recomputes a layer, so that a layer
    sends the same tokens the second time. Expert by expert, the load varies by half about its mean."""

    def __init__(self, dispatcher, tokens):
        likes = torch.randn(EXPERTS) * 0.5
        chosen = (torch.rand(tokens, EXPERTS).log().neg_().log_().neg_() + likes).topk(CHOSEN).indices
        self.map = torch.zeros(tokens, EXPERTS, dtype=torch.bool).scatter_(1, chosen, True)
        mine = self.map.sum(0)
        mean = likes.softmax(0) * tokens * CHOSEN
        ranks = dispatcher.ep_size
        of_ranks = torch.stack([mine] + [torch.poisson(mean).long() for _ in range(ranks - 1)])
        local = dispatcher.local_expert_indices
        self.received = of_ranks[:, local[0]:local[-1] + 1].contiguous()
        self.sent = mine.view(ranks, -1).sum(1)


class HostRouted(token_dispatcher.MoEAlltoAllTokenDispatcher):
    """The dispatcher, with the sizes of a routing of the host's in place of what no kernel wrote."""

    def preprocess(self, routing_map):
        counts = super().preprocess(routing_map)
        self.routing = Routing(self, routing_map.size(0))
        self.input_splits.copy_(self.routing.sent)
        self.output_splits.copy_(self.routing.received.sum(1))
        self.output_splits_tp.copy_(self.routing.received.sum().view(1))
        self.num_global_tokens_per_local_expert.copy_(self.routing.received)
        counts.copy_(self.routing.received.sum(0))
        return counts

    def dispatch_preprocess(self, hidden_states, routing_map, probs):
        permute = token_dispatcher.permute
        token_dispatcher.permute = lambda tokens, _map, probs, **_named: self.permuted(tokens, probs)
        try:
            return super().dispatch_preprocess(hidden_states, routing_map, probs)
        finally:
            token_dispatcher.permute = permute

    def permuted(self, tokens, probs):
        """As Megatron's `permute`, whose masked_select would read from the device how many tokens there are."""
        expert, token = self.routing.map.T.nonzero(as_tuple=True)
        at = token.cuda()
        weights = probs.T.contiguous().view(-1).index_select(0, (expert * len(tokens) + token).cuda())
        return tokens.index_select(0, at), weights, at


class Run:
    def __init__(self, of):
        self.__dict__.update(MODELS[of.model], **{"is_virtual": False, "recomputes": False, "shares_optimizer": False,
                                                  "optimizer_on_host": False, **CASES[of.case]})
        self.has_experts = of.model == "qwen"
        self.shares_optimizer |= self.has_experts
        self.chunks = self.layers // STAGES // 2 if self.is_virtual else 1
        self.microbatches = of.microbatches or self.sequences // self.batch // (WORLD // STAGES // self.tensor)
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=self.tensor, pipeline_model_parallel_size=STAGES,
            virtual_pipeline_model_parallel_size=self.chunks if self.is_virtual else None,
            expert_model_parallel_size=self.tensor if self.has_experts else 1,
            expert_tensor_parallel_size=1 if self.has_experts else None, create_gloo_process_groups=False)
        tensor_parallel.model_parallel_cuda_manual_seed(of.seed)
        torch.manual_seed(of.seed)
        self.config = self.configured()
        self.models = [self.chunk(at if self.is_virtual else None) for at in range(self.chunks)]
        self.config.finalize_model_grads_func = finalize_model_grads
        self.optimizer = None if self.optimizer_on_host else self.made_optimizer()

    def configured(self):
        made = dict(
            num_layers=self.layers, hidden_size=self.hidden, num_attention_heads=self.heads, ffn_hidden_size=self.inner,
            tensor_model_parallel_size=self.tensor, pipeline_model_parallel_size=STAGES, sequence_parallel=True,
            virtual_pipeline_model_parallel_size=self.chunks if self.is_virtual else None,
            bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, normalization="RMSNorm", gated_linear_unit=True,
            activation_func=functional.silu, bias_activation_fusion=False, masked_softmax_fusion=False,
            gradient_accumulation_fusion=False, overlap_p2p_comm=self.is_virtual, batch_p2p_comm=not self.is_virtual,
            deallocate_pipeline_outputs=True)
        if self.recomputes:
            made.update(recompute_granularity="full", recompute_method="block", recompute_num_layers=self.layers // STAGES)
        if self.has_experts:
            made.update(
                normalization="LayerNorm", add_bias_linear=False, hidden_dropout=0.0, attention_dropout=0.0,
                num_moe_experts=EXPERTS, moe_router_topk=CHOSEN, moe_ffn_hidden_size=self.inner,
                moe_shared_expert_intermediate_size=SHARED * self.inner, moe_router_load_balancing_type="aux_loss",
                moe_aux_loss_coeff=1e-2, moe_router_pre_softmax=True, moe_token_dispatcher_type="alltoall",
                expert_model_parallel_size=self.tensor, expert_tensor_parallel_size=1)
        return TransformerConfig(**made)

    def chunk(self, stage):
        layer = get_gpt_layer_local_spec(num_experts=self.config.num_moe_experts)
        layer.submodules.self_attention.submodules.core_attention = FusedAttention
        layer.submodules.input_layernorm = layer.submodules.pre_mlp_layernorm = Norm
        layers = [layer] * get_num_layers_to_build(self.config, vp_stage=stage)
        made = GPTModel(
            self.config, TransformerBlockSubmodules(layer_specs=layers, layer_norm=Norm), self.words, self.length,
            position_embedding_type="rope", vp_stage=stage,
            pre_process=parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=stage),
            post_process=parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=stage))
        return DistributedDataParallel(
            self.config,
            DistributedDataParallelConfig(grad_reduce_in_fp32=True, use_distributed_optimizer=self.shares_optimizer),
            Float16Module(self.config, made.cuda()), disable_bucketing=bool(stage))

    def made_optimizer(self):
        optimizers.Adam = functools.partial(torch.optim.AdamW, fused=True)
        made = get_megatron_optimizer(
            OptimizerConfig(optimizer="adam", lr=1e-5, bf16=True, params_dtype=torch.bfloat16, clip_grad=1.0,
                            use_distributed_optimizer=self.shares_optimizer), self.models, use_gloo_process_groups=False)
        self.config.grad_scale_func = made.scale_loss
        return made

    def batches(self):
        while True:
            yield torch.zeros(self.batch, self.length + 1, dtype=torch.long)

    def step(self):
        for model in self.models:
            model.zero_grad_buffer()
        if self.optimizer:
            self.optimizer.zero_grad()
        get_forward_backward_func()(
            forward_step_func=forward_step, data_iterator=[self.batches() for _ in self.models], model=self.models,
            num_microbatches=self.microbatches, seq_length=self.length, micro_batch_size=self.batch)
        if self.optimizer:
            self.optimizer.step()


def forward_step(batches, model):
    text = next(batches).cuda()
    tokens, labels = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    places = torch.arange(tokens.size(1), device="cuda").unsqueeze(0).expand_as(tokens)
    mask = torch.ones(tokens.shape, dtype=torch.float32, device="cuda")

    def loss_of(losses):
        loss = (losses.float().view(-1) * mask.view(-1)).sum() / mask.sum()
        return loss, {"loss": loss.detach()}

    return model(tokens, places, None, labels=labels), loss_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--rank", type=int, default=0, help="of eight; the last four of them have the loss")
    parser.add_argument("--microbatches", type=int, help="as the scripts have by default")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="of the routing to experts")
    of = parser.parse_args()
    if "RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
    else:
        dist.init_process_group("fake", store=fake_pg.FakeStore(), rank=of.rank, world_size=WORLD)
    moe_layer.MoEAlltoAllTokenDispatcher = HostRouted
    moe_utils.te_general_gemm = None  # 0.16.1 has no such name without Transformer Engine, and asks for it
    run = Run(of)
    for _ in range(of.steps):
        run.step()
    torch.cuda.synchronize()
    print(f"allocated {torch.cuda.max_memory_allocated()} reserved {torch.cuda.max_memory_reserved()}")


if __name__ == "__main__":
    main()
