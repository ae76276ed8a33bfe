// A page of one explanation, and the columns of a run on it.
#ifndef ASHLAR_TESTS_COMMANDS_REPORT_DRAWN_PAGE_H_
#define ASHLAR_TESTS_COMMANDS_REPORT_DRAWN_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "commands/explain/explanation.h"
#include "commands/explain/page/page.h"
#include "gtest/gtest.h"
#include "tests/commands/report/page_reader.h"

namespace ashlar::tests {

inline constexpr char kTemplate[] =
    "<title><!--ashlar:title--></title>\n<!--ashlar:document-->\n<script>program</script>";

inline std::string PageOf(const answers::Explanation& explanation, const std::string& name = "a.pickle") {
  report::PageWriter writer(kTemplate);
  writer.AddInput({.name = name}, explanation);
  absl::StatusOr<std::string> html = std::move(writer).Finish({.title = name, .made_by = "ashlar", .command = "c"});
  EXPECT_TRUE(html.ok()) << html.status();
  return *std::move(html);
}

// The columns of one run, by name.
class RunColumns {
 public:
  RunColumns(const PageReader& page, std::size_t run) : json_(page.index()["runs"][run]) {
    for (const auto& [name, column] : json_["columns"].items()) columns_[name] = page.Column(json_, name);
  }
  const nlohmann::json& json() const { return json_; }
  const std::vector<std::int64_t>& operator[](const std::string& name) const { return columns_.at(name); }
  bool Has(const std::string& name) const { return columns_.count(name) > 0; }
  std::size_t moment_count() const { return json_["moment_count"]; }

 private:
  nlohmann::json json_;
  std::map<std::string, std::vector<std::int64_t>> columns_;
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_COMMANDS_REPORT_DRAWN_PAGE_H_
