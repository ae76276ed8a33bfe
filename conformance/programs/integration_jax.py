"""What JAX makes of the settings of its memory, by its own function; no device is started."""

import json

import jax
from jaxlib import xla_client

options = xla_client.generate_pjrt_gpu_plugin_options()
names = ("allocator", "memory_fraction", "preallocate")
print(json.dumps({"program": "integration_jax", "version": f"jax {jax.__version__}", "options": {n: options.get(n) for n in names}}))
