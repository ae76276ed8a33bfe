#include "analyzer/exports/folded.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "analyzer/exports/flat_text.h"
#include "analyzer/exports/stack_weights.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::exports {
namespace {

std::string FoldedFrame(const trace::Frame& frame) {
  std::string out = FrameText(frame);
  for (char& c : out) {
    if (c == ';') c = ':';
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return readers::ToPrintable(out);
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

}  // namespace ashlar::exports
