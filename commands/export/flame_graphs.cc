#include "commands/export/flame_graphs.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/state/pin_blame.h"
#include "analyzer/formats/utf8.h"
#include "commands/export/flat_text.h"

namespace ashlar::exports {

WeightedStacks LiveWeights(const ExportedRun& run) {
  WeightedStacks out{absl::StrCat("device ", run.device(), ": live bytes at ", MomentInWords(run)), {}};
  for (const analyses::LiveStack& stack : analyses::LiveStacks(run.traced.timeline.StateAt(run.moment))) {
    out.stacks.push_back({stack.stack, stack.bytes});
  }
  return out;
}

WeightedStacks StrandedWeights(const ExportedRun& run) {
  WeightedStacks out{
      absl::StrCat("device ", run.device(), ": stranded bytes, by what pins them, at ", MomentInWords(run)), {}};
  for (const analyses::PinGroup& group : analyses::BlamePins(run.traced.timeline, run.moment).groups) {
    out.stacks.push_back({group.stack, group.blame_bytes});
  }
  return out;
}

namespace {

std::string FoldedFrame(const trace::Frame& frame) {
  std::string out = FrameText(frame);
  for (char& c : out) {
    if (c == ';') c = ':';
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return formats::ToPrintable(out);
}

std::string FoldedStack(const trace::StackTable& stacks, trace::StackId id) {
  const absl::Span<const trace::FrameId> frames = stacks.stack(id);
  if (frames.empty()) return kNoStackText;
  std::string out;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    absl::StrAppend(&out, out.empty() ? "" : ";", FoldedFrame(stacks.frame(*frame)));
  }
  return out;
}

}  // namespace

void WriteFolded(const ExportedRun& run, bool names_device, ByteSink& out) {
  std::map<std::string, std::uint64_t> lines;  // equal texts are one line
  for (const StackWeight& weight : LiveWeights(run).stacks) {
    lines[FoldedStack(run.traced.stacks, weight.stack)] += weight.bytes;
  }
  const std::string root = names_device ? absl::StrCat("device ", run.device(), ";") : "";
  for (const auto& [stack, bytes] : lines) out.Append(absl::StrCat(root, stack, " ", bytes, "\n"));
}

namespace {

std::string FrameJson(const std::string& function, const std::string& file, std::int64_t line) {
  std::string out = "{\"name\":";
  AppendJsonText(function.empty() ? "unknown" : function, out);
  if (!file.empty()) {
    out += ",\"file\":";
    AppendJsonText(file, out);
  }
  if (line >= 0 && !file.empty()) absl::StrAppend(&out, ",\"line\":", line);
  return out + "}";
}

}  // namespace

SpeedscopeWriter::SpeedscopeWriter(ByteSink& out) : out_(out) {
  out_.Append(
      "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"ashlar\",\"profiles\":[");
}

std::size_t SpeedscopeWriter::IndexOf(FrameKey key) {
  const auto [known, is_new] = indices_.try_emplace(key, frames_.size());
  if (is_new) frames_.push_back(FrameJson(std::get<0>(key), std::get<1>(key), std::get<2>(key)));
  return known->second;
}

std::size_t SpeedscopeWriter::IndexOf(const trace::Frame& frame) {
  const bool is_scope = frame.file == trace::kScopeFile;
  return IndexOf(FrameKey{frame.function, is_scope ? "" : frame.file, is_scope ? -1 : frame.line});
}

void SpeedscopeWriter::Profile(const WeightedStacks& picture, const trace::StackTable& stacks) {
  std::string head = is_first_ ? "\n" : ",\n";
  is_first_ = false;
  head += "{\"type\":\"sampled\",\"name\":";
  AppendJsonText(picture.name, head);
  std::uint64_t total = 0;
  for (const StackWeight& weight : picture.stacks) total += weight.bytes;
  absl::StrAppend(&head, ",\"unit\":\"bytes\",\"startValue\":0,\"endValue\":", total, ",\"samples\":[");
  out_.Append(head);
  const char* before = "";
  for (const StackWeight& weight : picture.stacks) {
    const absl::Span<const trace::FrameId> frames = stacks.stack(weight.stack);
    std::string sample = absl::StrCat(std::exchange(before, ","), "[");
    if (frames.empty()) absl::StrAppend(&sample, IndexOf(FrameKey{kNoStackText, "", -1}));
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      absl::StrAppend(&sample, frame == frames.rbegin() ? "" : ",", IndexOf(stacks.frame(*frame)));
    }
    out_.Append(sample + "]");
  }
  out_.Append("],\"weights\":[");
  before = "";
  for (const StackWeight& weight : picture.stacks) {
    out_.Append(absl::StrCat(std::exchange(before, ","), weight.bytes));
  }
  out_.Append("]}");
}

void SpeedscopeWriter::Add(const ExportedRun& run) {
  Profile(LiveWeights(run), run.traced.stacks);
  const WeightedStacks stranded = StrandedWeights(run);
  if (!stranded.stacks.empty()) Profile(stranded, run.traced.stacks);
}

void SpeedscopeWriter::Finish() {
  out_.Append("\n],\"shared\":{\"frames\":[");
  const char* before = "\n";
  for (const std::string& frame : frames_) out_.Append(absl::StrCat(std::exchange(before, ",\n"), frame));
  out_.Append("\n]}}\n");
}

}  // namespace ashlar::exports
