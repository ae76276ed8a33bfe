#include "kernels/tensor/framework.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/policy/torch_rules.h"

namespace ashlar::kernels {

std::optional<Version> VersionOf(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  std::array<int, 3> numbers = {};
  if (parts.size() < 2 || parts.size() > numbers.size()) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!std::all_of(parts[i].begin(), parts[i].end(), absl::ascii_isdigit)) return std::nullopt;
    if (!absl::SimpleAtoi(parts[i], &numbers[i])) return std::nullopt;
  }
  return Version{numbers[0], numbers[1]};
}

namespace {

constexpr Version kFirstTorch = {1, 10}, kLastOfOne = {1, 13}, kFirstOfTwo = {2, 0},
                  kLastTorch = policy::kNewestRelease;

bool IsKnownTorch(const Version& version) {
  return (version >= kFirstTorch && version <= kLastOfOne) || (version >= kFirstOfTwo && version <= kLastTorch);
}

LtWorkspace LtWorkspaceOf(const Version& version) {
  if (version < Version{1, 13}) return LtWorkspace::kNone;
  if (version < Version{2, 9}) return LtWorkspace::kOfCall;
  if (version < Version{2, 11}) return LtWorkspace::kKept;
  return version < Version{2, 15} ? LtWorkspace::kOfCublas : LtWorkspace::kOfCall;
}

}  // namespace

absl::StatusOr<Framework> FrameworkOf(absl::string_view torch_version) {
  const std::optional<Version> version = VersionOf(torch_version);
  if (!version.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("torch version '", torch_version, "' is not of the form 1.10, 1.13, 2.6"));
  }
  if (!IsKnownTorch(*version)) {
    return absl::InvalidArgumentError(absl::StrCat("torch ", torch_version, " is not known: 1.10 to 1.13 and 2.0 to ",
                                                   kLastTorch.first, ".", kLastTorch.second,
                                                   " are; give the nearest of these"));
  }
  const auto since = [&](int major, int minor) { return *version >= Version{major, minor}; };
  Framework out;
  out.softmax_saves_input = !since(1, 11);
  out.softmax_backward_product_first = !since(1, 11);
  out.dropout_makes_mask_first = since(1, 11);
  out.gelu_autocasts_to_float = !since(1, 11);
  out.linear_adds_bias_after = !since(1, 12);
  out.outer_products_are_triton = since(2, 13);
  out.lt_workspace = LtWorkspaceOf(*version);
  out.loads_kernels_lazily = since(1, 13);
  out.zero_grad_keeps_gradients = !since(2, 0);
  out.gradients_add_in_place = since(2, 1);
  out.cublas_workspace_is_of_call = since(2, 15);
  out.has_cublas_workspace = since(2, 0);
  out.optimizers_are_foreach = since(2, 0);
  out.foreach_adamw_lists = since(2, 1) ? 1 : 2;
  out.norms_are_foreach = since(2, 0);
  out.foreach_norms_are_one_tensor = !since(2, 4);
  out.mean_of_dims_saves_input = since(1, 13) && !since(2, 2);
  out.mean_saves_input = since(2, 0) && !since(2, 2);
  out.full_slices_are_operations = !since(2, 9);
  out.optimizer_block = since(2, 5) ? 256 : 2048;
  out.has_adafactor = since(2, 5);
  out.caches_casts_in_inference_mode = !since(2, 7);
  out.math_attention_in_float = since(2, 5);
  out.math_attention_softmax_is_safe = since(2, 5);
  out.attention_masks_by_where = since(2, 5);
  out.attention_seeds_on_device = since(2, 7);
  out.efficient_has_seeds = since(2, 14);
  out.efficient_shares_keys = since(2, 14);
  return out;
}

absl::StatusOr<GpuKind> GpuNamed(absl::string_view name) {
  // SMs and threads of an SM: the vendor's data sheets. The workspace: getChosenWorkspaceSize, CublasHandlePool.cpp.
  constexpr std::uint64_t kUsual = 8'519'680, kHopper = 33'554'432;
  static constexpr GpuKind kGpus[] = {{"V100", 70, 80, 2048, kUsual},
                                      {"T4", 75, 40, 1024, kUsual},
                                      {"A100", 80, 108, 2048, kUsual},
                                      {"H100", 90, 132, 2048, kHopper},
                                      {"H200", 90, 132, 2048, kHopper}};
  std::string known;
  for (const GpuKind& gpu : kGpus) {
    if (gpu.name == name) return gpu;
    absl::StrAppend(&known, known.empty() ? "" : ", ", gpu.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no GPU '", name, "' in the table: ", known));
}

}  // namespace ashlar::kernels
