"""One step of Qwen3.5: qwen35_sft.py 0.8B full|lora|qlora|nested LENGTH [checkpointing] [accumulation]"""

import sys

import torch
from nf4 import PackedLinear, pack
from qwen35 import batch_of, model_of, step, with_lora
from tell import tell

size, method, length = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.manual_seed(0)
model = model_of(size)
if method == "lora":
    model = with_lora(model)
elif method in ("qlora", "nested"):
    model = pack(model, 8, method == "nested").cuda()
if "checkpointing" in sys.argv:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if method != "full":
        model.enable_input_require_grads()
model.train()
batches = [batch_of(length, seed) for seed in range(2 if "accumulation" in sys.argv else 1)]
peak = step(model, batches)
trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
packed = [m for m in model.modules() if isinstance(m, PackedLinear)]
storage = sum(b.numel() * b.element_size() for m in packed for b in m.buffers())
tell("qwen35_sft", trained=trained, peak=peak, packed=storage)
