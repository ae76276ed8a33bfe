#include "analyzer/cli/launch_served.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "analyzer/cli/left_file.h"

namespace ashlar::cli {
namespace {

constexpr char kPrefix[] = "served-";

std::optional<serve::ServedCounts> CountsIn(const std::filesystem::path& path) {
  if (!IsLeftFile(path)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  char magic[sizeof(serve::kServedMagic)] = {};
  serve::ServedCounts out;
  in.read(magic, sizeof(magic));
  in.read(reinterpret_cast<char*>(&out), sizeof(out));
  if (!in || std::memcmp(magic, serve::kServedMagic, sizeof(magic)) != 0) return std::nullopt;
  return out;
}

bool IsIdle(const serve::ServedCounts& counts) {
  return counts.served_allocations + counts.passed_allocations + counts.has_torch == 0;
}

std::string Counted(std::uint64_t count, absl::string_view what) {
  return absl::StrCat(FormatCount(count), " ", what, count == 1 ? "" : "s");
}

std::string LineOf(const ServedProcess& of) {
  const serve::ServedCounts& counts = of.counts;
  std::string out = absl::StrCat("ashlar: process ", of.process, ": ");
  if (counts.has_torch != 0 && counts.served_allocations == 0) {
    return absl::StrCat(out, "it has PyTorch and was left to it\n");
  }
  if (counts.served_allocations == 0) {
    return absl::StrCat(out, "served nothing; passed to the driver ", Counted(counts.passed_allocations, "allocation"),
                        "\n");
  }
  absl::StrAppend(
      &out, "served ", Counted(counts.served_allocations, "allocation"), " and ", Counted(counts.served_frees, "free"),
      " by ", Counted(counts.device_allocations + counts.device_frees, "call"), " of the device (",
      FormatCount(counts.device_allocations), " that gave memory, ", FormatCount(counts.device_frees),
      " that took it back); peak ", FormatBytes(counts.peak_allocated_bytes), " of ",
      FormatBytes(counts.peak_reserved_bytes), " reserved; not freed ", FormatBytes(counts.allocated_bytes));
  if (counts.passed_allocations > 0) {
    absl::StrAppend(&out, "; passed to the driver ", Counted(counts.passed_allocations, "allocation"));
  }
  if (counts.has_ended == 0) absl::StrAppend(&out, "; it was killed: calls and bytes as of some requests earlier");
  return absl::StrCat(out, "\n");
}

}  // namespace

std::vector<ServedProcess> ReadServed(const std::string& folder) {
  std::vector<ServedProcess> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, kPrefix)) continue;
    const std::optional<serve::ServedCounts> counts = CountsIn(entry.path());
    if (counts.has_value() && !IsIdle(*counts)) out.push_back({name.substr(sizeof(kPrefix) - 1), *counts});
  }
  std::sort(out.begin(), out.end(), [](const ServedProcess& a, const ServedProcess& b) {
    return a.process.size() != b.process.size() ? a.process.size() < b.process.size() : a.process < b.process;
  });
  return out;
}

std::string ToText(const std::vector<ServedProcess>& served) {
  if (served.empty())
    return "ashlar: nothing was served: no process asked for device memory by calls that are served\n";
  std::string out;
  for (const ServedProcess& process : served) absl::StrAppend(&out, LineOf(process));
  return out;
}

}  // namespace ashlar::cli
