// Programs that leave what a run of `ashlar fit` leaves, as scripts of the shell, and the answer of `ashlar fit`.
#ifndef ASHLAR_TESTS_LAUNCHER_FIT_TEST_H_
#define ASHLAR_TESTS_LAUNCHER_FIT_TEST_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launcher/launched_test.h"

namespace ashlar {

class FitTest : public LaunchedTest {
 protected:
  using json = nlohmann::json;

  void SetUp() override {
    constexpr long kCreateRuleset = 444;  // asked for its version
    if (syscall(kCreateRuleset, nullptr, 0, 1) < 1)
      GTEST_SKIP() << "this Linux keeps no program from writing (Landlock)";
  }

  static constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

  static json Change(const std::string& name, int price, const std::string& why_not = "") {
    return {{"name", name},
            {"title", "the change " + name},
            {"group", ""},
            {"price", price},
            {"costs", price == 0 ? "none" : "more time"},
            {"alters", ""},
            {"applies", why_not.empty()},
            {"why_not", why_not},
            {"where", "train.py:7"},
            {"lines", {"write(" + name + ")"}}};
  }
  static json Facts(const std::vector<json>& changes, std::uint64_t peak_bytes, std::uint64_t steps = 6) {
    return {{"steps", steps},
            {"failed_step", nullptr},
            {"phases", {{{"what", "training"}, {"steps", 0}}}},
            {"peaks", {{{"steps", 2}, {"allocated", peak_bytes}, {"reserved", peak_bytes}}}},
            {"changes", json(changes)}};
  }
  // What a run leaves that needs so much, of which the context is a part.
  std::string Leaves(const std::vector<json>& changes, std::uint64_t peak_bytes, std::uint64_t steps = 6) const {
    return absl::StrCat(LeavingText("process-7.json", Books(peak_bytes)),
                        LeavingText("info-7.json", Info(nullptr, peak_bytes)),
                        LeavingText("fit-7.json", Facts(changes, peak_bytes, steps)));
  }
  std::string RunsOutOfMemory() const {
    return absl::StrCat(LeavingText("process-7.json", Books(14 * kGiB, 1)),
                        LeavingText("info-7.json", Info(nullptr, 14 * kGiB, 1)), "echo out of memory >&2; exit 1\n");
  }
  // A run of 20 GiB; each case is what a run with these changes does.
  std::string Program(const std::vector<json>& changes,
                      const std::vector<std::pair<std::string, std::string>>& cases) const {
    std::string lines =
        absl::StrCat("if [ -n \"$ASHLAR_APART\" ] && [ \"$ASHLAR_FIT\" = watch ]; then\n", RunsOutOfMemory(),
                     "fi\ncase \"$ASHLAR_FIT\" in\nwatch)\n", Leaves(changes, 20 * kGiB), ";;\n");
    for (const auto& [names, does] : cases) absl::StrAppend(&lines, names, ")\n", does, ";;\n");
    return Script("program", absl::StrCat(lines, "esac\nexit 0\n"));
  }
  json Answer(const std::string& flags, const std::string& program, int code = 0) const {
    const Result result = Run("fit --device T4 --jobs 1 --json " + flags + " -- " + program);
    EXPECT_EQ(result.code, code) << result.error;
    return json::parse(result.out, nullptr, false);
  }
  // It takes a GiB and 100 MiB for each of a batch, whose size is in the shell's `value`.
  std::string Grows(const std::vector<json>& changes) const {
    std::string text;
    for (const auto& [limit, peak] : {std::pair("-le 120", 13 * kGiB), std::pair("-gt 120", 20 * kGiB)}) {
      absl::StrAppend(&text, "if [ $value ", limit, " ]; then\n", LeavingText("process-7.json", Books(peak)),
                      LeavingText("info-7.json", Info(nullptr, peak)), LeavingText("fit-7.json", Facts(changes, peak)),
                      "fi\n");
    }
    return text;
  }
  static json Names(const std::vector<std::string>& names) { return names; }
  static json RowOf(const json& rows, const std::vector<std::string>& changes) {
    for (const json& row : rows) {
      if (row["changes"] == Names(changes)) return row;
    }
    return nullptr;
  }
};

}  // namespace ashlar

#endif  // ASHLAR_TESTS_LAUNCHER_FIT_TEST_H_
