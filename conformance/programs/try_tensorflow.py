"""TensorFlow: a Keras model is trained, what its allocator tells, and a request that finds no memory.

    python try_tensorflow.py [FILE...]     libraries to open first: the wheel of 2.21.0 does not look where cuSOLVER's is
"""

import ctypes
import json
import sys

for library in sys.argv[1:]:
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)

import numpy
import tensorflow as tf

(device,) = tf.config.list_physical_devices("GPU")
model = tf.keras.Sequential([tf.keras.layers.Conv2D(16, 3, activation="relu"), tf.keras.layers.Flatten(),
                             tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
images, labels = numpy.zeros((256, 32, 32, 3), numpy.float32), numpy.zeros((256,), numpy.int32)
trained = model.fit(images, labels, batch_size=64, epochs=2, verbose=0)
failure = ""
try:
    tf.zeros((1 << 36,))
except tf.errors.ResourceExhaustedError as error:
    failure = str(error).splitlines()[0]
print(json.dumps({"program": "try_tensorflow", "device": tf.config.experimental.get_device_details(device)["device_name"],
                  "epochs": len(trained.epoch), "parameters": model.count_params(), "failure": failure,
                  "peak_of_its_pool": tf.config.experimental.get_memory_info("GPU:0")["peak"]}))
