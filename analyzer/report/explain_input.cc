#include "analyzer/report/explain_input.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/readers/oom/oom_message.h"
#include "analyzer/readers/plain/plain_trace.h"
#include "analyzer/readers/snapshot.h"
#include "analyzer/readers/sniff.h"
#include "analyzer/report/json.h"
#include "analyzer/report/text.h"

namespace ashlar::report {
namespace {

using Explanations = std::vector<Explanation>;

absl::StatusOr<Explanations> OneOf(absl::StatusOr<Explanation> explanation) {
  if (!explanation.ok()) return explanation.status();
  return Explanations{*std::move(explanation)};
}

absl::StatusOr<Explanations> ExplainRecorded(const std::string& bytes, const ExplainOptions& options) {
  const absl::StatusOr<trace::Snapshot> snapshot = readers::ReadSnapshot(bytes);
  if (!snapshot.ok()) return snapshot.status();
  return OneOf(ExplainSnapshot(*snapshot, options));
}

absl::StatusOr<Explanations> ExplainPlainTrace(const std::string& bytes, const ExplainOptions& options) {
  const absl::StatusOr<trace::RequestTrace> requests = readers::ParsePlainTrace(bytes);
  if (!requests.ok()) return requests.status();
  return OneOf(ExplainRequests(*requests, options));
}

absl::StatusOr<Explanations> ExplainLog(const std::string& bytes, const ExplainOptions& options) {
  Explanations out = ExplainMessages(readers::FindOomMessages(bytes), options);
  if (!out.empty()) return out;
  return absl::InvalidArgumentError(
      absl::StrCat("this is ", readers::InputKindName(readers::Sniff(bytes)),
                   ", not a PyTorch memory snapshot, a request trace or a text with an out-of-memory message; record a "
                   "snapshot with torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"));
}

}  // namespace

absl::StatusOr<std::vector<Explanation>> ExplainInput(const std::string& bytes, const ExplainOptions& options) {
  const readers::InputKind kind = readers::Sniff(bytes);
  if (readers::IsSnapshot(kind)) return ExplainRecorded(bytes, options);
  if (kind == readers::InputKind::kPlainTrace) return ExplainPlainTrace(bytes, options);
  return ExplainLog(bytes, options);
}

std::string PrintExplanations(const std::vector<Explanation>& explanations, bool as_json) {
  if (as_json) return ToJson(explanations);
  std::string out;
  for (const Explanation& explanation : explanations) {
    if (!out.empty()) out += "\n";
    out += ToText(explanation);
  }
  return out;
}

}  // namespace ashlar::report
