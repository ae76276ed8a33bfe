// Writes explained inputs as one HTML file that needs nothing else: a template with the page's program, and in it a
// document, an index in JSON and columns of numbers (docs/internals/page.md).
//
//   PageWriter page(tmpl);
//   page.AddInput({.name = "rank3.pickle", .rank = 3}, explanation);   // its picture may go from here on
//   std::string html = *std::move(page).Finish({.title = "rank3.pickle", .made_by = "ashlar 0.1.0"});
//
// What a file names may hold anything: in the document it is data. The same inputs give the same bytes. Not
// thread-safe.
#ifndef ASHLAR_ANALYZER_REPORT_PAGE_PAGE_H_
#define ASHLAR_ANALYZER_REPORT_PAGE_PAGE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analyzer/answers/explanation.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {

// Of the template, each of them once.
inline constexpr char kTitlePlace[] = "<!--ashlar:title-->";
inline constexpr char kDocumentPlace[] = "<!--ashlar:document-->";

struct PageInput {
  std::string name;
  std::optional<int> rank = {};
};

struct PageFacts {
  std::string title = {};
  std::string made_by = {};  // "ashlar 0.1.0"
  std::string command = {};  // the command line that made the page
  // Answers of other commands, as the JSON that they print; empty: none.
  std::string diff = {};
  std::string estimate = {};
  std::string dry_run = {};
  std::string fleet = {};
};

class PageWriter {
 public:
  // The template must outlive it.
  explicit PageWriter(absl::string_view page_template) : template_(page_template) {}

  void AddInput(const PageInput& input, const answers::Explanation& explanation);

  // InvalidArgument where an answer of another command is no JSON; Internal where the template lacks a place.
  absl::StatusOr<std::string> Finish(const PageFacts& facts) &&;

 private:
  Json AddRuns(const answers::Explanation& explanation);

  absl::string_view template_;
  Json::Items inputs_;
  Json::Items runs_;
  std::vector<std::string> blobs_;
};

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PAGE_PAGE_H_
