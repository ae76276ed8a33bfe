// The parameters of a model, by name and in the order in which PyTorch lists them. A module makes its own here and
// keeps handles to them.
//
//   Parameters parameters(context);
//   Tensor weight = parameters.New("layers.0.attn.q_proj.weight", {1024, 1024}, Init::Normal(0.02));
#ifndef ASHLAR_KERNELS_NN_PARAMETERS_H_
#define ASHLAR_KERNELS_NN_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// What a parameter holds at the start, where there is arithmetic.
struct Init {
  double mean = 0;
  double deviation = 0;
  static Init Zero() { return {}; }
  static Init One() { return {1, 0}; }
  static Init Normal(double deviation) { return {0, deviation}; }
};

struct Parameter {
  std::string name;
  Tensor tensor;
};

class Parameters {
 public:
  explicit Parameters(Context& context) : context_(context) {}

  Tensor New(std::string name, Dims sizes, Init init);
  const std::vector<Parameter>& all() const { return all_; }
  std::int64_t count() const;  // of elements
  Context& context() const { return context_; }

 private:
  Context& context_;
  std::vector<Parameter> all_;
};

// Gradients are gone, or zeroed in place in a framework that keeps them.
void ZeroGradients(const Parameters& parameters);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_PARAMETERS_H_
