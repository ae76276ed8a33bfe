#include "kernels/nn/rotary.h"

#include <array>
#include <cmath>
#include <vector>

#include "kernels/autograd/cast.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

// Position s turns pair i by s theta^(-2i / D).
void FillTables(const Tensor& cosines, const Tensor& sines, double theta) {
  Context& context = cosines.context();
  if (!context.computes()) return;
  const std::int64_t length = cosines.size(1), width = cosines.size(2), half = width / 2;
  std::vector<float> of_cosines, of_sines;
  for (std::int64_t s = 0; s < length; ++s) {
    for (std::int64_t i = 0; i < width; ++i) {
      const double turn = std::pow(theta, -static_cast<double>(i % half) / static_cast<double>(half));
      of_cosines.push_back(static_cast<float>(std::cos(static_cast<double>(s) * turn)));
      of_sines.push_back(static_cast<float>(std::sin(static_cast<double>(s) * turn)));
    }
  }
  context.CopyBytes(cosines.view().data, of_cosines.data(), of_cosines.size() * sizeof(float));
  context.CopyBytes(sines.view().data, of_sines.data(), of_sines.size() * sizeof(float));
}

// cat((-x2, x1)) of the halves.
Tensor RotateHalf(const Tensor& x) {
  const std::int64_t width = x.size(-1);
  Tensor first = Slice(x, -1, 0, width / 2);
  Tensor second = Slice(x, -1, width / 2, width);
  const std::array<Tensor, 2> parts = {Neg(second), first};
  return Cat(parts, -1);
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(Context& context, std::int64_t head_width, double theta, bool scales)
    : theta_(theta), scales_(scales), frequencies_(Empty(context, {head_width / 2}, DType::kFloat32, Part::kWeights)) {
  if (context.computes()) context.Do(ops::Fill{frequencies_.view(), 1});  // the tables are filled by themselves
}

RotaryTables RotaryEmbedding::operator()(const Tensor& positions, DType dtype) const {
  Context& context = positions.context();
  const NoGrad no_grad(context);
  const Autocast none(context, false, DType::kFloat16);
  const std::int64_t half = frequencies_.elements();
  Tensor by_position = Cast(View(positions, {1, 1, -1}), DType::kFloat32);
  Tensor turns = Matmul(View(frequencies_, {1, half, 1}), by_position);
  Tensor both;
  {
    const std::array<Tensor, 2> twice = {Transpose(turns, 1, 2), Transpose(turns, 1, 2)};
    both = Cat(twice, -1);
  }
  const auto table_of = [&](const Tensor& of_turns) {
    const Tensor table = EmptyLike(of_turns);
    return scales_ ? EmptyLike(table) : table;  // filled at once
  };
  const Tensor cosines = table_of(both), sines = table_of(both);
  FillTables(cosines, sines, theta_);
  RotaryTables out;
  out.cosines = Cast(cosines, dtype);
  out.sines = Cast(sines, dtype);
  Release(by_position, turns, both);
  return out;
}

Tensor ApplyRotary(const Tensor& x, const RotaryTables& tables) {
  const Tensor cosines = Unsqueeze(tables.cosines, 1), sines = Unsqueeze(tables.sines, 1);
  Tensor straight = Mul(x, cosines);
  Tensor turned;
  {
    const Tensor half = RotateHalf(x);
    turned = Mul(half, sines);
  }
  Tensor out = Add(straight, turned);
  Release(straight, turned);
  return out;
}

}  // namespace ashlar::kernels
