"""What vLLM measured of itself before it made its KV cache: vllm-PID.json in the run folder, once it has measured.

    {"weights_bytes": 226492416, "activations_bytes": 671088640, "graphs_bytes": 0, "kv_cache_bytes": 77309411328,
     "requested_bytes": 79027018342}

These are attributes of its worker (vllm/v1/worker/gpu_worker.py), which it also logs. What a release names otherwise is not told.
Thread rule: that of the worker.
"""

from . import told as files

TOLD = {
    "activations_bytes": "peak_activation_memory",
    "graphs_bytes": "cudagraph_memory_estimate",
    "kv_cache_bytes": "available_kv_cache_memory_bytes",
    "requested_bytes": "requested_memory",
}


def sums(worker):
    told = {key: getattr(worker, name, None) for key, name in TOLD.items()}
    told["weights_bytes"] = getattr(getattr(worker, "model_runner", None), "model_memory_usage", None)
    return {key: int(bytes_) for key, bytes_ in told.items() if isinstance(bytes_, (int, float))}


def tell(worker, folder):
    told = sums(worker)
    if "kv_cache_bytes" in told:  # else its size was given, or it could not be measured
        files.write("vllm", told, folder)


def watch(module, folder):
    """After the import of the worker's module."""
    files.after(module.Worker, "determine_available_memory", "vLLM", lambda worker: tell(worker, folder))
