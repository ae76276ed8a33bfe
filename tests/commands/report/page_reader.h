// Reads a page that `ashlar report` wrote, as a browser would: the index, and columns out of the packed blobs. Shares
// no code with what writes it.
//
//   const PageReader page(html);
//   page.index()["runs"][0]["moment_count"];
//   page.Column(page.index()["runs"][0], "allocated");
#ifndef ASHLAR_TESTS_COMMANDS_REPORT_PAGE_READER_H_
#define ASHLAR_TESTS_COMMANDS_REPORT_PAGE_READER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace ashlar::tests {

class PageReader {
 public:
  // Fails the test where the page is not as it should be.
  explicit PageReader(const std::string& html);

  const nlohmann::json& index() const { return index_; }
  // Empty where the run has no such column.
  std::vector<std::int64_t> Column(const nlohmann::json& run, const std::string& name) const;

 private:
  const std::string& Blob(std::size_t number) const;

  nlohmann::json index_;
  std::vector<std::string> packed_;  // base64
  mutable std::map<std::size_t, std::string> unpacked_;
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_COMMANDS_REPORT_PAGE_READER_H_
