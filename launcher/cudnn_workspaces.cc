#include "launcher/cudnn_workspaces.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "launcher/cudnn_process.h"

namespace ashlar::cli {
namespace {

constexpr std::uint64_t kFirstVersion = 90'800;  // that makes plans without a device

// What to do where no plan was answered.
std::string WhySilent(const libraries::CudnnUse& use) {
  const std::string name =
      use.version == 0 ? std::string("cuDNN") : absl::StrCat("cuDNN ", libraries::CudnnVersionText(use.version));
  if (use.version != 0 && use.version < kFirstVersion) {
    return absl::StrCat(name, " makes no plan without a device: put 9.8 or later into the program's environment");
  }
  if (use.why_not.empty()) return absl::StrCat(name, " has no answer about any of them");
  return absl::StrCat(name, ": ", use.why_not,
                      ": see that libcudnn and libcublasLt load without a GPU in the program's environment");
}

}  // namespace

std::string WorkspacesText(const libraries::CudnnUse& use) {
  const std::string flag = absl::StrCat("--workspaces ", kCudnnWorkspaces, ": ");
  if (use.plans == 0) return absl::StrCat(flag, "the program made no plan of cuDNN's graph interface");
  const std::string plans = absl::StrCat(FormatCount(use.plans), use.plans == 1 ? " plan" : " plans");
  if (use.answered == 0) return absl::StrCat(flag, "0 B for ", plans, ", as without it: ", WhySilent(use));
  const std::size_t silent = use.plans - use.answered;
  return absl::StrCat(flag, FormatCount(use.answered), " of ", plans, " had the workspace that cuDNN ",
                      libraries::CudnnVersionText(use.version),
                      " names by its heuristics without a device, the largest ", FormatBytes(use.most_bytes),
                      silent == 0 ? "" : absl::StrCat(", and ", FormatCount(silent), " had 0 B, as it had no answer"),
                      "; a GPU may take others (docs/measurements/h200.md compares)");
}

libraries::CudnnUse AskCudnn(const CudnnPlans& plans, std::chrono::milliseconds most) {
  if (plans.graphs.empty()) return {};
  const auto until = std::chrono::steady_clock::now() + most;
  const auto left = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  };
  libraries::CudnnUse out{.plans = plans.graphs.size() + plans.more};
  CudnnProcess library({plans.library, plans.cublaslt, plans.device});
  for (const std::string& graph : plans.graphs) {
    const std::string line = library.Ask(absl::StrCat("first ", graph), left()).value_or("");
    if (library.is_given_up()) break;
    absl::string_view text = line;
    std::uint64_t bytes = 0;
    if (!absl::ConsumePrefix(&text, "= ") || !absl::SimpleAtoi(text, &bytes)) continue;
    ++out.answered;
    out.most_bytes = std::max(out.most_bytes, bytes);
  }
  out.version = library.version();
  if (out.answered == 0) out.why_not = library.why_not();
  return out;
}

}  // namespace ashlar::cli
