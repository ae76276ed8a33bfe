"""What vLLM measured of itself before it made its KV cache, and what that has room for: vllm-PID.json in the run folder, once it
has measured.

    {"weights_bytes": 226492416, "activations_bytes": 671088640, "graphs_bytes": 0, "kv_cache_bytes": 77309411328,
     "requested_bytes": 79027018342, "tokens": 4789248, "longest_request": 1024, "most_requests": 256}

The bytes are attributes of its worker (vllm/v1/worker/gpu_worker.py), the counts of its engine's settings (vllm/v1/engine/core.py),
where the engine is the worker's process. It logs them too. What a release names otherwise is not told.
Thread rule: that of the worker, and of the engine that waits for it.
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


def counts(engine):
    """Tokens of its cache, of a request at most, and requests at once at most; of an engine that has its cache."""
    settings = engine.vllm_config
    told = {
        "tokens": getattr(settings.cache_config, "kv_cache_size_tokens", None),
        "longest_request": settings.model_config.max_model_len,
        "most_requests": settings.scheduler_config.max_num_seqs,
    }
    return told if all(isinstance(value, int) for value in told.values()) else {}


class Told(object):
    """Of this process."""

    def __init__(self, folder):
        self.folder, self.values = folder, {}

    def measured(self, worker):
        told = sums(worker)
        if "kv_cache_bytes" in told:  # else its size was given, or it could not be measured
            self.add(told)

    def made(self, engine):
        if self.values:  # else its workers are other processes
            self.add(counts(engine))

    def add(self, told):
        self.values.update(told)
        files.write("vllm", self.values, self.folder)


_told = []


def _of(folder):
    if not _told:
        _told.append(Told(folder))
    return _told[0]


def watch(module, folder):
    """After the import of the worker's module."""
    files.after(module.Worker, "determine_available_memory", "vLLM", _of(folder).measured)


def watch_engine(module, folder):
    """After the import of the engine's module."""
    files.after(module.EngineCore, "__init__", "vLLM", _of(folder).made)
