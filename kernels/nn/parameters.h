// The parameters of a model, by name and in the order in which PyTorch lists them. A module makes its own here and
// keeps handles to them.
//
//   Parameters parameters(context);
//   Tensor weight = parameters.New("layers.0.attn.q_proj.weight", {1024, 1024}, Init::Normal(0.02));
//
// Frozen ones need no gradient, as after requires_grad_(False): the graph saves nothing for it, and optimizers leave
// them out.
//
//   Parameters parameters(context, {.frozen = {"embeddings", "encoder.layer.*.attention"}});
//   BertModel bert(parameters, ...);
//   if (absl::Status status = parameters.CheckFrozen(); !status.ok()) return status;
#ifndef ASHLAR_KERNELS_NN_PARAMETERS_H_
#define ASHLAR_KERNELS_NN_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// First values of tensors, made on the host and copied over: the same on every device and machine. Only where there is
// arithmetic.

// Normal numbers (float32), drawn from the context's random numbers; a deviation of 0 fills with the mean.
void FillNormal(const Tensor& tensor, double mean, double deviation);
// (2, S, D / 2) float32: cosines and sines of position s times theta^(-2i / D).
void FillRotary(const Tensor& table, double theta);
// (1, length) int64: arange.
Tensor CountedPositions(Context& context, std::int64_t length);
// Contiguous tensors of int64, int32.
void FillIds(const Tensor& tensor, absl::Span<const std::int64_t> values);

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

// Whether `pattern` names the parameter or a module it is in: a run of whole parts between dots, anywhere in the name,
// in which * stands for any characters of a part. "layer.1" is in "encoder.layer.1.output.dense.weight", and not in
// "encoder.layer.10.output.dense.weight".
bool IsNamedBy(absl::string_view name, absl::string_view pattern);

struct ParameterOptions {
  std::vector<std::string> frozen = {};   // patterns, as IsNamedBy takes them
  std::vector<std::string> on_host = {};  // whole names: tables that a module looks up on the host, and makes none of
  DType dtype = DType::kFloat32;          // of all; another one is a model in pure half precision
};

class Parameters {
 public:
  explicit Parameters(Context& context, ParameterOptions options = {});

  Tensor New(std::string name, Dims sizes, Init init);
  const std::vector<Parameter>& all() const { return all_; }
  std::int64_t count() const;  // of elements
  bool IsFrozen(absl::string_view name) const;
  bool IsOnHost(absl::string_view name) const;
  // Once all are made: a pattern that names none of them, or patterns that leave nothing to train, are an error that
  // says what there is.
  absl::Status CheckFrozen() const;
  Context& context() const { return context_; }
  DType dtype() const { return options_.dtype; }

 private:
  std::string Modules() const;

  Context& context_;
  ParameterOptions options_;
  std::vector<Parameter> all_;
};

// Gradients are gone, or zeroed in place in a framework that keeps them.
void ZeroGradients(const Parameters& parameters);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_PARAMETERS_H_
