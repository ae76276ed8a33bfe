// A checkpointed segment of several tensors, against gradients worked out by hand.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/autograd/engine.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/nn/parameters.h"
#include "kernels/workloads/runtime.h"

namespace ashlar::kernels {
namespace {

const float* CheckpointValues(const Tensor& tensor) { return static_cast<const float*>(tensor.view().data); }

// y = a b, a itself and b^2, and of these mean(y) + 2 mean(a): the gradients are (b + 2) / 3 and a / 3.
TEST(Checkpointing, TakesAndGivesSeveralTensors) {
  const std::unique_ptr<Runtime> runtime = *Runtime::Make({.kind = DeviceKind::kHost,
                                                           .capacity_bytes = kMiB * 64,
                                                           .framework = *FrameworkOf("2.6"),
                                                           .gpu = *GpuNamed("A100")});
  Context& context = runtime->context();
  Parameters parameters(context);
  const Tensor a = parameters.New("a", {3}, Init::Normal(1)), b = parameters.New("b", {3}, Init::Normal(1));
  const Segment segment = [](absl::Span<const Tensor> in) {
    EXPECT_FALSE(in[1].defined());
    return std::vector<Tensor>{Mul(in[0], in[2]), in[0], Square(in[2])};
  };
  const std::vector<Tensor> out = Checkpoint({a, {}, b}, segment);
  ASSERT_EQ(out.size(), 3u);
  Backward(Add(MeanOfAll(out[0]), MulScalar(MeanOfAll(out[1]), 2)));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FLOAT_EQ(CheckpointValues(out[1])[i], CheckpointValues(a)[i]);
    EXPECT_FLOAT_EQ(CheckpointValues(a.grad())[i], (CheckpointValues(b)[i] + 2) / 3);
    EXPECT_FLOAT_EQ(CheckpointValues(b.grad())[i], CheckpointValues(a)[i] / 3);
  }
}

}  // namespace
}  // namespace ashlar::kernels
