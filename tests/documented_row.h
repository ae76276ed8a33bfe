// A row of a table in docs/guide/estimate_accuracy.md, so that a test can hold what is written to what is computed.
#ifndef ASHLAR_TESTS_DOCUMENTED_ROW_H_
#define ASHLAR_TESTS_DOCUMENTED_ROW_H_

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"

namespace ashlar::tests {

// The row whose first cell is `label`; empty where there is none.
inline std::string DocumentedRow(const std::string& label) {
  std::ifstream file(ASHLAR_SOURCE_DIR "/docs/guide/estimate_accuracy.md");
  const std::string begin = absl::StrCat("| ", label, " |");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, begin)) return line;
  }
  return "";
}

// "14,949 | 14,949 / 14,949 | 0.00 / 0.00 |": MiB measured and computed, and what the latter is off by, in percent.
inline std::string ErrorCells(std::uint64_t measured_mib, std::uint64_t up_mib, std::uint64_t down_mib) {
  const auto error = [&](std::uint64_t mib) {
    return (static_cast<double>(mib) / static_cast<double>(measured_mib) - 1) * 100;
  };
  return absl::StrFormat("%s | %s / %s | %.2f / %.2f |", FormatCount(measured_mib), FormatCount(up_mib),
                         FormatCount(down_mib), error(up_mib), error(down_mib));
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_DOCUMENTED_ROW_H_
