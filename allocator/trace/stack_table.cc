#include "allocator/trace/stack_table.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace ashlar::trace {
namespace {

// "C:\Users\me\train.py" and "\\server\share\train.py", which Windows reads with '/' as well.
std::string Slashed(absl::string_view file) {
  const bool has_drive = file.size() > 2 && file[1] == ':' && file[2] == '\\';
  if (!has_drive && !absl::StartsWith(file, "\\\\")) return std::string(file);
  return absl::StrReplaceAll(file, {{"\\", "/"}});
}

}  // namespace

FrameId StackTable::InternFrame(absl::string_view file, std::int64_t line, absl::string_view function,
                                const FxNode& fx) {
  std::string key = absl::StrCat(line, "\n", file, "\n", function);
  if (fx != FxNode{}) absl::StrAppend(&key, "\n", fx.op, "\n", fx.name, "\n", fx.target, "\n", fx.original_trace);
  const auto [it, is_new] = frame_ids_.try_emplace(std::move(key), static_cast<FrameId>(frames_.size()));
  if (is_new) {
    frames_.push_back(Frame{Slashed(file), std::string(function), line, fx});
    if (frames_.back().file != file) recorded_files_.emplace(it->second, file);
  }
  return it->second;
}

const std::string& StackTable::RecordedFile(FrameId id) const {
  const auto recorded = recorded_files_.find(id);
  return recorded == recorded_files_.end() ? frames_[id].file : recorded->second;
}

StackId StackTable::InternStack(absl::Span<const FrameId> frames) {
  const absl::string_view key(reinterpret_cast<const char*>(frames.data()), frames.size() * sizeof(FrameId));
  if (const auto known = stack_ids_.find(key); known != stack_ids_.end()) return known->second;
  const auto [it, is_new] = stack_ids_.try_emplace(std::string(key), static_cast<StackId>(starts_.size() - 1));
  if (is_new) {
    stack_frames_.insert(stack_frames_.end(), frames.begin(), frames.end());
    starts_.push_back(stack_frames_.size());
  }
  return it->second;
}

absl::Span<const FrameId> StackTable::stack(StackId id) const {
  if (id == kNoStack) return {};
  return absl::MakeConstSpan(stack_frames_).subspan(starts_[id], starts_[id + 1] - starts_[id]);
}

LabelId LabelTable::Intern(const Label& label) {
  if (label == Label{}) return kNoLabel;
  const auto [it, is_new] = ids_.try_emplace(label, static_cast<LabelId>(labels_.size()));
  if (is_new) labels_.push_back(label);
  return it->second;
}

const Label& LabelTable::label(LabelId id) const {
  static const Label none;
  return id == kNoLabel ? none : labels_[id];
}

}  // namespace ashlar::trace
