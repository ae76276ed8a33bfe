#include "commands/shared/processes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace ashlar::answers {
namespace {

std::vector<std::int64_t> ChildrenOf(const std::string& process) {
  std::vector<std::int64_t> out;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(process + "/task", error)) {
    std::ifstream children(thread.path() / "children");
    out.insert(out.end(), std::istream_iterator<std::int64_t>(children), {});
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<std::int64_t> ProcessesFrom(std::int64_t pid) {
  std::error_code error;
  if (!std::filesystem::exists(absl::StrCat("/proc/", pid), error)) return {};
  std::vector<std::int64_t> out = {pid};
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const std::int64_t child : ChildrenOf(absl::StrCat("/proc/", out[i]))) out.push_back(child);
  }
  return out;
}

}  // namespace ashlar::answers
