"""JAX: a product on the device that jax.devices() names."""

import json

import jax
import jax.numpy

(device,) = jax.devices("cuda")
x = jax.numpy.ones((256, 256))
y = jax.jit(lambda m: m @ m)(x).block_until_ready()
print(json.dumps({"program": "try_jax", "device": device.device_kind, "shape": list(y.shape)}))
