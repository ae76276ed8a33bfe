// How the reduction kernel cuts its work, as far as its memory depends on it.
#include <algorithm>
#include <bit>

#include "kernels/autograd/reduce.h"
#include "kernels/tensor/shape.h"

namespace ashlar::kernels {
namespace {

constexpr std::int64_t kMostThreads = 512;  // of a block, divided by the outputs of a thread
constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kVector = 4;  // elements a thread reads at once, where they lie together
constexpr std::int64_t kFewValues = 16;
constexpr std::int64_t kManyValues = 256;
constexpr std::int64_t kPartialBytes = 4;  // sums are float whatever the dtype

std::int64_t LastPowerOf2(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

struct ReductionShape {
  std::int64_t inputs = 1;  // values of an output
  std::int64_t outputs = 1;
  std::int64_t fastest = 1;  // size of the innermost run
  bool reduces_fastest = false;
  bool is_one_run = false;  // everything into one value, without gaps
};

ReductionShape ShapeOf(const Layout& in, const Dims& out_sizes) {
  ReductionShape out;
  std::int64_t smallest = 0;
  for (std::size_t dim = 0; dim < in.sizes.size(); ++dim) {
    if (in.sizes[dim] == 1) continue;
    const bool is_reduced = out_sizes[dim] == 1;
    (is_reduced ? out.inputs : out.outputs) *= in.sizes[dim];
    if (smallest == 0 || in.strides[dim] < smallest) {
      smallest = in.strides[dim];
      out.reduces_fastest = is_reduced;
      out.fastest = in.sizes[dim];
    }
  }
  out.is_one_run = out.outputs == 1 && IsDense(in);
  out.reduces_fastest = out.reduces_fastest || out.outputs == 1;
  return out;
}

}  // namespace

ReductionScratch ScratchOfReduction(const Gpu& gpu, const Layout& in, const Dims& out_sizes) {
  const ReductionShape shape = ShapeOf(in, out_sizes);
  std::int64_t width_bound = shape.reduces_fastest ? shape.inputs : shape.outputs;
  const std::int64_t height_bound = shape.reduces_fastest ? shape.outputs : shape.inputs;
  std::int64_t outputs_a_thread = 1;
  if (shape.reduces_fastest) {
    if (shape.is_one_run && width_bound > 128) width_bound /= kVector;
  } else {
    outputs_a_thread = kVector;
    while (shape.fastest % outputs_a_thread != 0) outputs_a_thread /= 2;
    width_bound /= outputs_a_thread;
  }

  const std::int64_t most = kMostThreads / outputs_a_thread;
  const std::int64_t width_power = std::min(LastPowerOf2(width_bound), most);
  const std::int64_t height_power = std::min(LastPowerOf2(height_bound), most);
  std::int64_t width = std::min(width_power, kWarp);
  const std::int64_t height = std::min(height_power, most / width);
  width = std::min(width_power, most / height);

  std::int64_t input_step = 1, output_step = 1;
  (shape.reduces_fastest ? input_step : output_step) *= width;
  bool splits_rows = false;
  if (DivideUp(shape.inputs, input_step) >= std::min(height * kFewValues, kManyValues)) {
    input_step *= height;
    splits_rows = true;
  } else {
    output_step *= height;
  }
  const std::int64_t groups = DivideUp(shape.outputs / outputs_a_thread, output_step);
  const std::int64_t values = DivideUp(shape.inputs, input_step);
  const std::int64_t target = gpu.sm_count * (gpu.threads_per_sm / (width * height));
  if (!splits_rows || values < kManyValues || groups > target) return {};
  const std::int64_t blocks =
      std::max(std::min(DivideUp(target, groups), DivideUp(values, kFewValues)), DivideUp(values, kManyValues));
  if (blocks <= 1) return {};
  std::int64_t partial = kPartialBytes * shape.outputs * blocks;
  if (!shape.reduces_fastest) partial *= width * outputs_a_thread;
  return {static_cast<std::uint64_t>(partial), static_cast<std::uint64_t>(4 * groups)};
}

}  // namespace ashlar::kernels
