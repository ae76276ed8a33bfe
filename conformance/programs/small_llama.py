"""A small Llama without weights, for engines that make them up (load_format="dummy").

    with small_llama.folder() as path:
        llm = LLM(path, load_format="dummy", skip_tokenizer_init=True)
"""

import contextlib
import json
import os
import tempfile

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
    "hidden_act": "silu",
}


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as path:
        with open(os.path.join(path, "config.json"), "w") as out:
            json.dump(MODEL, out)
        yield path
