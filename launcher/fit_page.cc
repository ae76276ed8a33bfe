#include "launcher/fit_page.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/explain/page/page_file.h"
#include "launcher/explain.h"

namespace ashlar::cli {

absl::StatusOr<std::string> FitPage(const FitPageAsked& asked, const answers::FitAnswer& answer,
                                    const answers::Progress& progress, FitRuns& runs) {
  const std::vector<std::string> changes = answer.set.has_value() ? answer.set->changes : answer.with;
  const RerunEnd end = runs.RunWithNames({.changes = changes, .on_card = true, .is_whole = true}, asked.most_seconds);
  std::vector<answers::Explanation> explanations;
  if (const ProcessRun* run = ToExplain(end.results); run != nullptr) {
    ProcessMemory memory{.context_bytes = asked.card.context.bytes,
                         .in_use_bytes = asked.card.in_use.bytes,
                         .addresses = asked.card.addresses,
                         .is_drawn = true};
    if (asked.card.has_limit) memory.total_bytes = asked.card.total.bytes;
    absl::StatusOr<answers::Explanation> explanation = ExplainProcess(*run, memory, progress);
    if (explanation.ok()) {
      explanation->name = changes.empty() ? "as it is" : absl::StrCat("with ", absl::StrJoin(changes, ", "));
      explanations.push_back(*std::move(explanation));
    }
  }
  const std::string program = absl::StrJoin(answer.program, " ");
  return PageOf(explanations, {.title = absl::StrCat("fit of ", program), .fit = report::ToJson(answer)});
}

}  // namespace ashlar::cli
