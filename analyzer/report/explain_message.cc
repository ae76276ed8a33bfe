#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "analyzer/report/explain.h"
#include "analyzer/report/explain_causes.h"
#include "analyzer/report/json.h"

namespace ashlar::report {
namespace {

std::string Headline(const readers::OomMessage& message) {
  std::string out = "OUT OF MEMORY";
  if (message.device.has_value()) absl::StrAppend(&out, "  device ", *message.device);
  if (message.tried.has_value()) absl::StrAppend(&out, ": tried to allocate ", message.tried->printed);
  if (message.free.has_value()) absl::StrAppend(&out, ", ", message.free->printed, " free");
  return out;
}

}  // namespace

Explanation ExplainMessage(const readers::OomMessage& message, const ExplainOptions& options) {
  const analyses::OomMessageVerdict verdict =
      analyses::JudgeOomMessage(message, {.capacity_bytes = options.capacity_bytes});
  Explanation out;
  out.source = absl::StrCat("out-of-memory message (", message.family, ")", message.truncated ? ", cut off" : "");
  out.headline = Headline(message);
  out.verdict = verdict.kind;
  out.verdict_certain = verdict.verdict_certain;
  out.evidence = verdict.evidence;
  out.moment = "the moment of the message";
  if (verdict.gap.has_value()) absl::StrAppend(&out.moment, ", after the cache had returned what it could");
  out.accounting = verdict.accounting;
  out.tried_bytes = verdict.tried_bytes;
  out.request_bytes = verdict.request_bytes;
  out.request_interval = verdict.request_interval;
  out.headroom = verdict.headroom;
  out.next_step = verdict.next_step;
  out.next_lines = verdict.next_lines;
  out.notes = verdict.notes;
  out.advice.sentence = "what other settings would have done is not in this message: it needs a recorded snapshot";
  AddCauses(message, verdict, out);
  return out;
}

std::vector<Explanation> ExplainMessages(absl::Span<const readers::OomMessage> messages,
                                         const ExplainOptions& options) {
  std::vector<Explanation> out;
  std::vector<std::uint64_t> times;
  std::map<std::string, std::size_t> seen;  // what would be printed -> index in `out`
  for (const readers::OomMessage& message : messages) {
    Explanation explanation = ExplainMessage(message, options);
    const auto [known, is_new] = seen.emplace(ToJson({explanation}), out.size());
    if (is_new) {
      out.push_back(std::move(explanation));
      times.push_back(0);
    }
    ++times[known->second];
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (times[i] > 1) out[i].notes.push_back({"repeated", "times that this same message stands in the text", times[i]});
  }
  return out;
}

}  // namespace ashlar::report
