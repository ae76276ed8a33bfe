#include "analyzer/cli/launch_archs.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace ashlar::cli {
namespace {

// CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility" and "Family-Specific Features".
std::optional<bool> Runs(absl::string_view arch, gpus::Capability card) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(arch, absl::MaxSplits('_', 1));
  absl::string_view digits = parts.second;
  const char kind =
      digits.empty() || absl::ascii_isdigit(static_cast<unsigned char>(digits.back())) ? ' ' : digits.back();
  if (kind != ' ') digits.remove_suffix(1);
  int number = 0;
  const bool is_code = parts.first == "sm", is_text = parts.first == "compute";
  if ((!is_code && !is_text) || !absl::SimpleAtoi(digits, &number)) return std::nullopt;
  const gpus::Capability built = {number / 10, number % 10};
  if (kind == 'a') return built == card;
  if (is_code || kind == 'f') return built.major == card.major && built.minor <= card.minor;
  return built <= card;
}

}  // namespace

std::optional<bool> HasKernelsFor(const std::vector<std::string>& archs, gpus::Capability card) {
  std::optional<bool> out;
  for (const std::string& arch : archs) {
    const std::optional<bool> runs = Runs(arch, card);
    if (runs.has_value()) out = out.value_or(false) || *runs;
  }
  return out;
}

}  // namespace ashlar::cli
