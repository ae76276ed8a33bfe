#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/answers/explain.h"
#include "analyzer/answers/explain_causes.h"

namespace ashlar::answers {
namespace {

std::string Headline(const readers::OomMessage& message) {
  std::string out = "OUT OF MEMORY";
  if (message.device.has_value()) absl::StrAppend(&out, "  device ", *message.device);
  if (message.tried.has_value()) absl::StrAppend(&out, ": tried to allocate ", message.tried->InWords());
  if (message.free.has_value()) absl::StrAppend(&out, ", ", message.free->InWords(), " free");
  return out;
}

bool SameCauses(const Explanation& a, const Explanation& b) {
  const auto parts = [](const analyses::CauseFinding& of) {
    return std::tie(of.kind, of.finding, of.confidence, of.bytes, of.evidence, of.counter_evidence, of.missing);
  };
  return std::equal(
      a.causes.begin(), a.causes.end(), b.causes.begin(), b.causes.end(),
      [&parts](const ExplainedCause& x, const ExplainedCause& y) { return parts(x.finding) == parts(y.finding); });
}

// Of two explanations of messages: whether everything that one fills in is the same.
bool SaysTheSame(const Explanation& a, const Explanation& b) {
  const auto parts = [](const Explanation& of) {
    return std::tie(of.source, of.headline, of.verdict, of.verdict_certain, of.evidence, of.moment, of.accounting,
                    of.tried_bytes, of.request_bytes, of.request_interval, of.headroom, of.next_step, of.next_lines,
                    of.notes);
  };
  const auto path = [](const Explanation& of) {
    return of.raised_at ? of.raised_at->path : std::vector<std::string>{};
  };
  return parts(a) == parts(b) && path(a) == path(b) && SameCauses(a, b);
}

}  // namespace

std::optional<RaisedAt> RaisedAtOf(const readers::OomMessage& message) {
  std::vector<trace::Frame> frames;
  for (const readers::TracebackLine& line : message.traceback) frames.push_back(line.frame);
  const std::vector<std::size_t> own = analyses::NearestFrames(frames);
  if (own.empty()) return std::nullopt;
  RaisedAt out{analyses::FrameLabel(frames[own.back()]), message.traceback[own.back()].code, {}};
  for (const std::size_t i : own) out.path.push_back(analyses::FrameLabel(frames[i]));
  return out;
}

Explanation ExplainMessage(const readers::OomMessage& message, const ExplainOptions& options) {
  const analyses::OomMessageVerdict verdict =
      analyses::JudgeOomMessage(message, {.capacity_bytes = options.replay.capacity_bytes});
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
  out.raised_at = RaisedAtOf(message);
  out.advice.sentence = "what other settings would have done is not in this message: it needs a recorded snapshot";
  AddCauses(verdict, out);
  return out;
}

std::vector<Explanation> ExplainMessages(absl::Span<const readers::OomMessage> messages,
                                         const ExplainOptions& options) {
  std::vector<Explanation> out;
  std::vector<std::uint64_t> times;
  // Headline and evidence, where the figures of a message stand -> those of `out` that have them: few.
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::size_t>> seen;
  std::uint64_t left_out = 0;
  for (const readers::OomMessage& message : messages) {
    if (out.size() == kMostExplainedMessages) {
      ++left_out;
      continue;
    }
    Explanation explanation = ExplainMessage(message, options);
    std::vector<std::size_t>& alike = seen[{explanation.headline, explanation.evidence}];
    const auto known =
        std::find_if(alike.begin(), alike.end(), [&](std::size_t i) { return SaysTheSame(out[i], explanation); });
    if (known != alike.end()) {
      ++times[*known];
      continue;
    }
    alike.push_back(out.size());
    out.push_back(std::move(explanation));
    times.push_back(1);
  }
  if (left_out > 0) {
    out.back().notes.push_back(
        {"left_out", absl::StrCat("messages behind the ", out.size(), "th of other figures, which are not explained"),
         left_out});
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (times[i] > 1) out[i].notes.push_back({"repeated", "times that this same message stands in the text", times[i]});
  }
  return out;
}

}  // namespace ashlar::answers
