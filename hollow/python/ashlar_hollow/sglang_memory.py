"""What SGLang took for its KV cache, as it counts itself: sglang-PID.json in the run folder, once its pools are made.

    {"weights_bytes": 343932928, "kv_cache_bytes": 135258390528, "requested_bytes": 135587135488, "tokens": 8255517}

These are attributes of its model runner (sglang/srt/model_executor/model_runner.py), in GiB there, which it also logs. A draft model's
runner counts for itself and is not told; nor is what a release names otherwise.
Thread rule: that of the scheduler.
"""

from . import told as files

GIB = 1 << 30


def sums(runner):
    told = {"weights_bytes": _bytes(runner, "weight_load_mem_usage")}
    pool = getattr(runner, "token_to_kv_pool", None)
    told["kv_cache_bytes"] = _bytes(pool, "mem_usage")
    before, share = getattr(runner, "pre_model_load_memory", None), getattr(runner, "mem_fraction_static", None)
    if isinstance(before, (int, float)) and isinstance(share, (int, float)):
        told["requested_bytes"] = int(before * share * GIB)
    tokens = getattr(runner, "max_total_num_tokens", None)
    if isinstance(tokens, int):
        told["tokens"] = tokens
    return {key: value for key, value in told.items() if value is not None}


def _bytes(of, name):
    gib = getattr(of, name, None)
    return int(gib * GIB) if isinstance(gib, (int, float)) else None


def tell(runner, folder):
    told = sums(runner)
    if told.get("kv_cache_bytes") and not getattr(runner, "is_draft_worker", False):
        files.write("sglang", told, folder)


def watch(module, folder):
    """After the import of the model runner's module."""
    files.after(module.ModelRunner, "alloc_memory_pool", "SGLang", lambda runner: tell(runner, folder))
