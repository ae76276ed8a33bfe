// The switches that change what an eager step allocates: by version of PyTorch, by GPU and by library. Each switch
// names its source.
#ifndef ASHLAR_KERNELS_TENSOR_FRAMEWORK_H_
#define ASHLAR_KERNELS_TENSOR_FRAMEWORK_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"

namespace ashlar::kernels {

// A version is a release of a library by its first two numbers; behaviours depend on it.
//
//   VersionOf("2.14.1") == Version{2, 14}; VersionOf("2") == nullopt

using Version = std::pair<int, int>;

// Of "2.14" or "2.14.1"; nullopt for every other form.
std::optional<Version> VersionOf(absl::string_view text);

// Where a cublasLt call, a product with a bias, has its workspace.
enum class LtWorkspace : std::uint8_t {
  kNone,     // up to 1.12: no such calls
  kOfCall,   // from 1.13: 1 MiB for the call (CUDABlas.cpp 2.6)
  kKept,     // 2.9 and 2.10: 1 MiB of each thread and stream, kept for good (pull request 156495)
  kOfCublas  // 2.11 to 2.14: cuBLAS's own (pull request 168175)
};

// The switches' defaults are those of a version from 2.4 to 2.6.
struct Framework {
  bool softmax_saves_input = false;             // <= 1.10, log_softmax too (PyTorch pull request 65242)
  bool softmax_backward_product_first = false;  // <= 1.10: grad * result before the output
  bool dropout_makes_mask_first = true;         // from 1.11: native_dropout, before the output (Dropout.cu 1.10, 2.14)
  bool gelu_autocasts_to_float = false;         // <= 1.10 (pull request 59639)
  bool linear_adds_bias_after = false;          // <= 1.11, inputs of 3 dims and more: matmul, then + bias (pull 72728)
  bool outer_products_are_triton = false;       // >= 2.13: bmm over one element, without cuBLAS (_native/ops)
  LtWorkspace lt_workspace = LtWorkspace::kOfCall;
  bool loads_kernels_lazily = true;           // from 1.13: a smaller CUDA context (pull request 86509)
  bool zero_grad_keeps_gradients = false;     // < 2.0: zeroed in place (optimizer.py 1.13, 2.6)
  bool gradients_add_in_place = true;         // > 2.0: two gradients that meet (input_buffer.cpp 1.13, 2.6)
  bool cublas_workspace_is_of_call = false;   // 2.15: each product takes and frees one; cublasLt its 1 MiB alone
  bool has_cublas_workspace = true;           // >= 2.0: from the allocator, not the driver (CublasHandlePool.cpp)
  bool optimizers_are_foreach = true;         // >= 2.0, on CUDA (optimizer.py)
  int foreach_adamw_lists = 1;                // full lists of temporaries: 2 in 1.13 and 2.0, 1 in 2.6 (adamw.py)
  bool norms_are_foreach = true;              // >= 2.0: clip_grad_norm_ in lists (clip_grad.py)
  bool foreach_norms_are_one_tensor = false;  // < 2.4 or so: the norms are views (ForeachReduceOp.cu)
  bool mean_of_dims_saves_input = false;      // 1.13 to 2.1 (issue 109876, pull request 109935; Functions.h 1.13)
  bool mean_saves_input = false;              // of all elements: 2.0 and 2.1 (the same)
  bool full_slices_are_operations = true;     // x[:, 0] slices dim 0: up to 2.8 (TensorIndexing.h 1.13, 2.8)
  std::int64_t optimizer_block = 256;  // elements of an 8-bit state with a scale: 2048 before 2.5 (bitsandbytes 0.44)
  bool has_adafactor = true;           // >= 2.5: PyTorch's own (_adafactor.py)
  bool caches_casts_in_inference_mode =
      true;                             // up to 2.6; 2.12 and later, and traces of 2.11, do not (autocast_mode.cpp)
  bool math_attention_in_float = true;  // >= 2.5: half inputs are converted (attention.cpp)
  bool math_attention_softmax_is_safe = true;  // >= 2.5: rows with nothing left are found and zeroed (attention.cpp)
  bool attention_masks_by_where = true;        // >= 2.5: a bool mask becomes a bias by one where (attention.cpp)
  bool attention_seeds_on_device = false;      // >= 2.7: two, of FlashAttention (flash_api.cpp)
  bool efficient_has_seeds = false;            // >= 2.14: two that nobody reads, unless there is dropout (attention.cu)
  bool efficient_shares_keys = false;          // >= 2.14: fewer key heads than query heads (pull request 191085)
};

// "1.10", "1.13", "2.6", "2.14.1". Errors say which releases are known: later ones may allocate otherwise.
absl::StatusOr<Framework> FrameworkOf(absl::string_view torch_version);

struct GpuKind {
  absl::string_view name;
  int compute_capability = 0;  // 80 for 8.0
  std::int64_t sm_count = 0;
  std::int64_t threads_per_sm = 0;
  std::uint64_t cublas_workspace_bytes = 0;  // one a (thread, stream); 32 MiB on sm_90, else 8,519,680 bytes
};

// "V100", "T4", "A100", "H100", "H200". Errors list them.
absl::StatusOr<GpuKind> GpuNamed(absl::string_view name);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_FRAMEWORK_H_
