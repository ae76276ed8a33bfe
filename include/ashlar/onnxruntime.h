/* The allocator for ONNX Runtime's CUDA provider, as the three functions that it takes by address: its options
 * gpu_external_alloc, gpu_external_free and gpu_external_empty_cache, which are set together. In libashlar.so.
 *
 *   ashlar_onnxruntime_functions functions = {sizeof functions, 0, 0, 0};
 *   if (ashlar_onnxruntime(0, &functions) != ASHLAR_OK) die(ashlar_last_error());
 *   snprintf(text, sizeof text, "%zu", (size_t)functions.alloc);     (the value of gpu_external_alloc; so the others)
 *
 * They are of the process's allocator of GPU `device`, which must be the provider's device_id. They have no stream:
 * with them ONNX Runtime computes on the default stream, in whose order memory is reused, and takes no
 * user_compute_stream.
 *
 * Errors: ashlar_onnxruntime as ashlar_process_allocator. alloc: NULL where memory is not enough, which ONNX Runtime
 * makes an exception without a reason; so the reason goes to stderr. free: an address that is not live is told on
 * stderr too. Threads: any.
 */
#ifndef ASHLAR_ONNXRUNTIME_H_
#define ASHLAR_ONNXRUNTIME_H_

#include <ashlar.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ashlar_onnxruntime_functions {
  size_t struct_size; /* sizeof(ashlar_onnxruntime_functions) */
  void* (*alloc)(size_t bytes);
  void (*free)(void* memory);
  void (*empty_cache)(void);
} ashlar_onnxruntime_functions;

/* ASHLAR_INVALID_ARGUMENT: no such device, or above 15. */
ASHLAR_API ashlar_status ashlar_onnxruntime(int device, ashlar_onnxruntime_functions* out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif  // ASHLAR_ONNXRUNTIME_H_
