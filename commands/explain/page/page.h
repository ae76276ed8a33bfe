// Writes explained inputs as one HTML file that needs nothing else: a template with the page's program, and in it a
// document, an index in JSON and columns of numbers (docs/internals/page.md).
//
//   PageWriter page(tmpl);
//   page.AddInput({.name = "rank3.pickle", .rank = 3}, explanation);   // its picture may go from here on
//   std::string html = *std::move(page).Finish({.title = "rank3.pickle", .made_by = "ashlar 0.1.0"});
//
// What a file names may hold anything: in the document it is data. The same inputs give the same bytes. Not
// thread-safe.
#ifndef ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_H_
#define ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "commands/explain/explanation.h"
#include "commands/explain/picture/picture.h"
#include "commands/shared/json_values.h"

namespace ashlar::report {

// Of the template, each of them once.
inline constexpr char kTitlePlace[] = "<!--ashlar:title-->";
inline constexpr char kDocumentPlace[] = "<!--ashlar:document-->";

struct PageInput {
  std::string name;
  std::optional<int> rank = {};
};

// "dumps/rank3.pickle" as the page names it: without folders, with the rank that the name tells. Also "rank_12" and
// "rank-7"; "-" is standard input.
PageInput PageInputOf(const std::string& input);

// "rank0.pickle and 7 more".
std::string PageTitle(const std::vector<std::string>& inputs);

// The memory of one page is shared by its inputs.
answers::PictureLimits PictureLimitsOf(std::size_t inputs);

struct PageFacts {
  std::string title = {};
  std::string made_by = {};  // "ashlar 0.1.0"
  std::string command = {};  // the command line that made the page
  // Answers of other commands, as the JSON that they print; empty: none.
  std::string diff = {};
  std::string estimate = {};
  std::string dry_run = {};
  std::string fleet = {};
  std::string fit = {};
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

// A run of a picture as the page reads it: its JSON, and the two blobs that hold its columns (docs/internals/page.md).

// The sums over time go to one blob, blocks and segments to another; those that are new are appended.
Json RunJson(const answers::RunPicture& run, std::size_t input, std::vector<std::string>& blobs);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_H_
