// The launches behind CudaOps: plain arguments, so that nvcc sees neither Abseil nor the ops, and g++ no device code.
// Each launches on the stream, allocates nothing, and returns the launch's error.
#ifndef ASHLAR_KERNELS_OPS_CUDA_LAUNCH_H_
#define ASHLAR_KERNELS_OPS_CUDA_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/ops/kinds.h"
#include "kernels/ops/optimizer_rules.h"

namespace ashlar::ops::cuda {

// Contiguous elements; nothing there: data nullptr.
struct Array {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  bool is_aligned = false;  // to four elements
};

// Operands walked together, dims merged, 0 innermost (kernels/ops/view.h).
struct Strided {
  static constexpr int kMostOperands = 4;
  static constexpr int kMostDims = 8;
  int dims = 1;
  std::int64_t count = 0;
  std::int64_t size[kMostDims] = {};
  std::int64_t stride[kMostDims][kMostOperands] = {};
  Array operand[kMostOperands];
};

// --- elementwise.cu ---
struct Scalars {
  float first = 0;
  float second = 0;
};
cudaError_t LaunchUnary(const Strided& walk, UnaryKind kind, cudaStream_t stream);
cudaError_t LaunchUnaryBackward(const Strided& walk, UnaryKind kind, cudaStream_t stream);
cudaError_t LaunchAffine(const Strided& walk, Scalars scale_shift, cudaStream_t stream);
cudaError_t LaunchBinary(const Strided& walk, BinaryKind kind, float scale, cudaStream_t stream);
cudaError_t LaunchAddProduct(const Strided& walk, float value, bool is_quotient, cudaStream_t stream);

// --- copy.cu ---
cudaError_t LaunchCopy(const Strided& walk, cudaStream_t stream);  // any two dtypes
cudaError_t LaunchFill(const Strided& walk, std::uint64_t bits, cudaStream_t stream);
cudaError_t LaunchArange(const Strided& walk, double start, double step, cudaStream_t stream);
cudaError_t LaunchCompare(const Strided& walk, CompareKind kind, cudaStream_t stream);
// out, mask, yes, no; has_bits: `bits` in place of yes.
cudaError_t LaunchWhere(const Strided& walk, bool has_bits, std::uint64_t bits, cudaStream_t stream);

// --- reduce.cu ---
// `kept` walks the outputs (operand 0) with where each begins in the input (operand 1), `reduced` one output's
// elements.
struct ReduceArguments {
  ReduceKind kind = ReduceKind::kSum;
  Strided kept;
  Strided reduced;
  std::int64_t parts = 1;
  float* partial = nullptr;    // outputs x parts, where parts > 1
  bool is_by_columns = false;  // neighbouring outputs lie side by side in the input
};
cudaError_t LaunchReduce(const ReduceArguments& arguments, cudaStream_t stream);
// values, indices, in with dim left out; `size` elements with step `stride` along it.
cudaError_t LaunchMaxAlong(const Strided& walk, std::int64_t size, std::int64_t stride, cudaStream_t stream);
// other, index, table with dim left out.
struct IndexedArguments {
  Strided walk;
  std::int64_t count = 0;         // of index along dim
  std::int64_t table_size = 0;    // of the table along dim
  std::int64_t other_stride = 0;  // steps along dim
  std::int64_t index_stride = 0;
  std::int64_t table_stride = 0;
};
cudaError_t LaunchGather(const IndexedArguments& arguments, cudaStream_t stream);
cudaError_t LaunchScatterAdd(const IndexedArguments& arguments, cudaStream_t stream);

// --- norm.cu ---
struct NormArguments {
  std::int64_t rows = 0;
  std::int64_t size = 0;
  Array in, weight, bias, out;
  float epsilon = 0;
  float* mean = nullptr;  // nullptr: an RMS norm
  float* rstd = nullptr;
};
cudaError_t LaunchNorm(const NormArguments& arguments, cudaStream_t stream);
struct NormBackwardArguments {
  std::int64_t rows = 0;
  std::int64_t size = 0;
  Array grad, in, weight, grad_in, grad_weight, grad_bias;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  float* partial = nullptr;  // parts x (weight, bias) x size
  std::int64_t parts = 1;
};
cudaError_t LaunchNormBackward(const NormBackwardArguments& arguments, cudaStream_t stream);
struct RotaryArguments {
  Strided walk;  // out, in of (B, S, H, D): strides outermost first in size[0..3]
  const float* cos = nullptr;
  const float* sin = nullptr;
  bool is_interleaved = false;
  bool is_inverse = false;
};
cudaError_t LaunchRotary(const RotaryArguments& arguments, cudaStream_t stream);

// --- softmax.cu ---
struct SoftmaxArguments {
  std::int64_t rows = 0;
  std::int64_t size = 0;
  Array in, out;
  float scale = 1;
  bool is_log = false;
  bool is_causal = false;
  std::int64_t queries = 1;  // rows of a score matrix
  const std::uint8_t* mask = nullptr;
  int mask_dims = 0;  // leading dims, outermost first, and the steps of the mask in them and along the row
  std::int64_t mask_size[Strided::kMostDims] = {};
  std::int64_t mask_stride[Strided::kMostDims] = {};
  std::int64_t mask_step = 0;
};
cudaError_t LaunchSoftmax(const SoftmaxArguments& arguments, cudaStream_t stream);
struct SoftmaxBackwardArguments {
  std::int64_t rows = 0;
  std::int64_t size = 0;
  Array grad, result, out;
  float scale = 1;
  bool is_log = false;
};
cudaError_t LaunchSoftmaxBackward(const SoftmaxBackwardArguments& arguments, cudaStream_t stream);
struct DropoutArguments {
  std::int64_t count = 0;
  Array in, out;
  std::uint8_t* mask = nullptr;
  std::uint32_t threshold = 0;
  float factor = 1;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};
cudaError_t LaunchDropout(const DropoutArguments& arguments, cudaStream_t stream);
cudaError_t LaunchDropoutBackward(const DropoutArguments& arguments, cudaStream_t stream);

// --- attention.cu, attention_backward.cu ---
struct HeadRows {  // (B, H, S, D) with stride 1 in the last dim
  void* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;
};
struct AttentionArguments {
  DType dtype = DType::kFloat32;
  int batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, size = 0;
  HeadRows query, key, value, out;
  const std::int32_t* query_lengths = nullptr;
  const std::int32_t* key_lengths = nullptr;
  float scale = 1;
  bool is_causal = false;
  std::uint32_t threshold = 0;  // of dropout; 0: none
  float keep_factor = 1;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  float* log_sum_exp = nullptr;
  // backward
  HeadRows grad, grad_query, grad_key, grad_value;
  float* delta = nullptr;  // (B, H, Sq)
};
cudaError_t LaunchAttention(const AttentionArguments& arguments, cudaStream_t stream);
cudaError_t LaunchAttentionBackward(const AttentionArguments& arguments, cudaStream_t stream);

// --- embedding.cu ---
struct EmbeddingArguments {
  std::int64_t count = 0;
  std::int64_t vocabulary = 0;
  std::int64_t size = 0;
  Array indices, weight, out;
};
cudaError_t LaunchEmbedding(const EmbeddingArguments& arguments, cudaStream_t stream);
struct EmbeddingBackwardArguments {
  std::int64_t count = 0;
  std::int64_t vocabulary = 0;
  std::int64_t size = 0;
  std::int64_t padding_index = -1;
  bool is_accumulated = false;
  Array indices, grad, grad_weight;
  void* scratch = nullptr;  // 6 arrays of `count` int32, each aligned to 256 bytes, 256 bytes, and CUB's
  std::size_t cub_bytes = 0;
};
// What CUB's sort and reduce-by-key ask for; needs a device.
cudaError_t AskCubBytes(std::int64_t count, std::size_t* bytes);
cudaError_t LaunchEmbeddingBackward(const EmbeddingBackwardArguments& arguments, cudaStream_t stream);

// --- loss.cu ---
struct LossArguments {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t ignore_index = 0;
  Array values;  // logits or log probabilities
  Array targets;
  Array out;  // gradients
  float* row_loss = nullptr;
  float* log_sum_exp = nullptr;
  float* loss = nullptr;
  float* total = nullptr;
  const float* grad_loss = nullptr;
};
cudaError_t LaunchCountTargets(const LossArguments& arguments, cudaStream_t stream);
cudaError_t LaunchNllLoss(const LossArguments& arguments, cudaStream_t stream);
cudaError_t LaunchNllLossBackward(const LossArguments& arguments, cudaStream_t stream);
cudaError_t LaunchCrossEntropy(const LossArguments& arguments, cudaStream_t stream);
cudaError_t LaunchCrossEntropyBackward(const LossArguments& arguments, cudaStream_t stream);

// --- optimizer.cu ---
// A launch's share of a list: pieces of tensors, one a block. 4 KiB of arguments hold it (CUDA C++ guide, execution
// configuration).
struct ListPart {
  static constexpr int kMostTensors = 24;
  static constexpr int kMostPieces = 800;
  int tensors = 0;
  int pieces = 0;
  Array parameter[kMostTensors];
  Array gradient[kMostTensors];
  void* first[kMostTensors] = {};
  void* second[kMostTensors] = {};
  std::int64_t count[kMostTensors] = {};
  std::uint8_t tensor_of[kMostPieces] = {};
  std::uint16_t piece_of[kMostPieces] = {};  // within the tensor
};
static_assert(sizeof(ListPart) <= 3900);
struct AdamWValues {
  AdamWRule rule;
  float beta1 = 0, beta2 = 0, learning_rate = 0;  // where `step` is on the device
  const float* inverse_scale = nullptr;
  const float* found_infinite = nullptr;
  const float* step = nullptr;
};
cudaError_t LaunchAdamW(const ListPart& part, std::int64_t piece, const AdamWValues& values, cudaStream_t stream);
cudaError_t LaunchSgd(const ListPart& part, std::int64_t piece, const SgdRule& rule, cudaStream_t stream);
struct AdamW8BitArguments {
  std::int64_t count = 0;
  Array parameter, gradient;
  std::uint8_t* first = nullptr;
  std::uint8_t* second = nullptr;
  float* first_scale = nullptr;
  float* second_scale = nullptr;
  const float* signed_map = nullptr;  // 256 values each, in host memory
  const float* unsigned_map = nullptr;
  AdamWRule rule;
};
cudaError_t LaunchAdamW8Bit(const AdamW8BitArguments& arguments, cudaStream_t stream);
// partial[piece of the whole list] = sum of squares of gradients.
cudaError_t LaunchSquares(const ListPart& part, std::int64_t piece, float* partial, cudaStream_t stream);
// norm = sqrt(sum of partial).
cudaError_t LaunchNormOf(const float* partial, std::int64_t count, float* norm, cudaStream_t stream);
cudaError_t LaunchClip(const ListPart& part, std::int64_t piece, float most, const float* norm, cudaStream_t stream);
cudaError_t LaunchUnscale(const ListPart& part, std::int64_t piece, const float* inverse_scale, float* found_infinite,
                          cudaStream_t stream);
struct AdafactorArguments {
  std::int64_t rows = 0, columns = 0;
  Array parameter, gradient;
  float* row = nullptr;
  float* column = nullptr;
  float* second = nullptr;
  float* column_partial = nullptr;  // parts x columns
  std::int64_t parts = 1;
  float* update_squares = nullptr;  // pieces
  float* parameter_squares = nullptr;
  std::int64_t pieces = 1;
  float* row_mean = nullptr;
  float learning_rate = 0, beta2 = 0, epsilon1 = 0, epsilon2 = 0, clip_threshold = 1, weight_decay = 0;
  bool is_scaled = true;
};
cudaError_t LaunchAdafactor(const AdafactorArguments& arguments, cudaStream_t stream);

}  // namespace ashlar::ops::cuda

#endif  // ASHLAR_KERNELS_OPS_CUDA_LAUNCH_H_
