#include "kernels/tensor/framework.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ashlar::kernels {

absl::StatusOr<Framework> FrameworkOf(absl::string_view torch_version) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(torch_version, absl::MaxSplits('.', 1));
  int major = 0, minor = 0;
  if (!absl::SimpleAtoi(parts.first, &major) || !absl::SimpleAtoi(parts.second, &minor) || major < 1 || major > 2 ||
      minor < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("torch version '", torch_version, "' is not of the form 1.10, 1.13, 2.6"));
  }
  const auto since = [&](int wanted_major, int wanted_minor) {
    return std::pair(major, minor) >= std::pair(wanted_major, wanted_minor);
  };
  Framework out;
  out.softmax_saves_input = !since(1, 11);
  out.softmax_backward_product_first = !since(1, 11);
  out.gelu_autocasts_to_float = !since(1, 11);
  out.linear_adds_bias_after = !since(1, 12);
  out.addmm_has_lt_workspace = since(1, 13);
  out.loads_kernels_lazily = since(1, 13);
  out.zero_grad_keeps_gradients = !since(2, 0);
  out.gradients_add_in_place = since(2, 1);
  out.has_cublas_workspace = since(2, 0);
  out.layer_norm_has_partial_sums = since(2, 0);
  out.optimizers_are_foreach = since(2, 0);
  out.foreach_adamw_lists = since(2, 1) ? 1 : 2;
  out.norms_are_foreach = since(2, 0);
  out.foreach_norms_are_one_tensor = !since(2, 4);
  out.mean_of_dims_saves_input = since(1, 13) && !since(2, 2);
  out.mean_saves_input = since(2, 0) && !since(2, 2);
  out.full_slices_are_operations = !since(2, 9);
  out.has_adafactor = since(2, 5);
  out.caches_casts_without_grad = !since(2, 7);
  out.math_attention_in_float = since(2, 5);
  out.math_attention_softmax_is_safe = since(2, 5);
  out.attention_masks_by_where = since(2, 5);
  out.attention_seeds_on_device = since(2, 7);
  return out;
}

absl::StatusOr<Gpu> GpuNamed(absl::string_view name) {
  // SMs and threads of an SM: the vendor's data sheets. The workspace: getChosenWorkspaceSize, CublasHandlePool.cpp.
  constexpr std::uint64_t kUsual = 8'519'680, kHopper = 33'554'432;
  static constexpr Gpu kGpus[] = {{"V100", 70, 80, 2048, kUsual},
                                  {"T4", 75, 40, 1024, kUsual},
                                  {"A100", 80, 108, 2048, kUsual},
                                  {"H100", 90, 132, 2048, kHopper},
                                  {"H200", 90, 132, 2048, kHopper}};
  std::string known;
  for (const Gpu& gpu : kGpus) {
    if (gpu.name == name) return gpu;
    absl::StrAppend(&known, known.empty() ? "" : ", ", gpu.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no GPU '", name, "' in the table: ", known));
}

}  // namespace ashlar::kernels
