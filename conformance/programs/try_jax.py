"""JAX: a jitted product, a gradient, steps of a training, what its allocator tells, and a request that finds no memory."""

import json

import jax
import jax.numpy as jnp

(device,) = jax.devices("cuda")
x = jnp.ones((256, 256))
y = jax.jit(lambda m: m @ m)(x).block_until_ready()


def loss(weights, inputs):
    hidden = jax.nn.relu(inputs @ weights[0])
    return jnp.mean((hidden @ weights[1]) ** 2)


step = jax.jit(lambda weights, inputs: [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights, inputs))])
weights = [jnp.ones((512, 1024)), jnp.ones((1024, 16))]
for _ in range(3):
    weights = step(weights, jnp.ones((64, 512)))
jax.block_until_ready(weights)
failure = ""
try:
    jnp.zeros((1 << 36,), jnp.float32).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    failure = str(error).splitlines()[0]
print(json.dumps({"program": "try_jax", "device": device.device_kind, "shape": list(y.shape), "failure": failure,
                  "peak_in_use": device.memory_stats()["peak_bytes_in_use"]}))
