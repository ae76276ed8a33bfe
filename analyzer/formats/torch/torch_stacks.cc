#include "analyzer/formats/torch/torch_stacks.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/formats/torch/torch_record.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr TorchRecordKind kFrame = {
    "frames", FieldSet({Field::kName, Field::kFilename, Field::kLine, Field::kFxNodeOp, Field::kFxNodeName,
                        Field::kFxNodeTarget, Field::kFxOriginalTrace})};

}  // namespace

StackReader::StackReader(const pickle::Document& document, FieldNames* names, NoteCounter* notes,
                         trace::StackTable* table)
    : document_(document), names_(names), notes_(notes), table_(table), known_(document.container_count(), 0) {}

absl::Status StackReader::Read(const Value& frames, trace::StackId* out) {
  if (frames.kind() != Kind::kList) return Within("frames", ExpectKind(frames, Kind::kList));
  std::uint32_t known = KnownAt(frames.payload());
  if (known == 0) {
    if (const std::uint32_t earlier = KnownEarlier(frames.payload()); earlier != 0) {
      *out = Renumbered(earlier - 1);
    } else if (absl::Status status = ReadStack(frames, out); !status.ok()) {
      return status;
    }
    known = *out + 1;
    SetKnown(frames.payload(), known);
  }
  *out = known - 1;
  return absl::OkStatus();
}

void StackReader::BeginAgain(trace::StackTable earlier) {
  earlier_ = std::move(earlier);
  known_earlier_ = std::exchange(known_, {});
  renumbered_.assign(earlier_.stack_count(), trace::kNoStack);
}

trace::StackId StackReader::Renumbered(trace::StackId earlier) {
  trace::StackId& out = renumbered_[earlier];
  if (out != trace::kNoStack) return out;
  frames_.clear();
  for (const trace::FrameId frame : earlier_.stack(earlier)) frames_.push_back(RenumberedFrame(frame));
  return out = table_->InternStack(frames_);
}

trace::FrameId StackReader::RenumberedFrame(trace::FrameId earlier) {
  const trace::Frame& frame = earlier_.frame(earlier);
  return table_->InternFrame(earlier_.RecordedFile(earlier), frame.line, frame.function, frame.fx);
}

absl::Status StackReader::ReadStack(const Value& frames, trace::StackId* out) {
  frames_.clear();
  pickle::ItemCursor items = document_.Items(frames);
  while (const Value* frame = items.Next()) {
    trace::FrameId id = 0;
    if (absl::Status status = ReadOne(*frame, &id); !status.ok()) return status;
    frames_.push_back(id);
  }
  *out = frames_.empty() ? trace::kNoStack : table_->InternStack(frames_);
  return absl::OkStatus();
}

absl::Status StackReader::ReadOne(const Value& frame, trace::FrameId* out) {
  if (frame.kind() != Kind::kDict) return Within("frames[]", ExpectKind(frame, Kind::kDict));
  std::uint32_t& known = KnownAt(frame.payload());
  if (known == 0) [[unlikely]] {
    trace::FrameId id = 0;
    if (const std::uint32_t earlier = KnownEarlier(frame.payload()); earlier != 0) {
      id = RenumberedFrame(earlier - 1);
    } else if (absl::Status status = ReadFrame(frame, &id); !status.ok()) {
      return status;
    }
    known = id + 1;
  }
  *out = known - 1;
  return absl::OkStatus();
}

absl::Status StackReader::ReadFrame(const Value& frame, trace::FrameId* out) {
  const Record record(document_, frame, kFrame, names_, notes_);
  absl::string_view file, function;
  std::int64_t line = 0;
  if (absl::Status status = record.GetText(Field::kFilename, &file); !status.ok()) return Within("frames[]", status);
  if (absl::Status status = record.GetText(Field::kName, &function); !status.ok()) return Within("frames[]", status);
  if (absl::Status status = ReadLine(record, &line); !status.ok()) return Within("frames[]", status);
  *out = table_->InternFrame(TextOf(file), line, TextOf(function), FxNodeOf(record));
  return absl::OkStatus();
}

// Python 3.13 has instructions that belong to no line: 2^64-1 there.
absl::Status StackReader::ReadLine(const Record& record, std::int64_t* line) {
  const Value* value = record.Find(Field::kLine);
  if (value == nullptr || (value->kind() != Kind::kUint && value->kind() != Kind::kNone)) {
    return record.GetSigned(Field::kLine, line);
  }
  *line = -1;
  notes_->Add("unknown_line", "frames whose line the file does not know");
  return absl::OkStatus();
}

trace::FxNode StackReader::FxNodeOf(const Record& record) {
  if (!record.Has(Field::kFxNodeName) && !record.Has(Field::kFxNodeOp)) return {};
  const auto text = [&](Field field) {
    absl::string_view out;
    return record.GetText(field, &out).ok() ? TextOf(out) : std::string();
  };
  return {text(Field::kFxNodeOp), text(Field::kFxNodeName), text(Field::kFxNodeTarget), text(Field::kFxOriginalTrace)};
}

std::string StackReader::TextOf(absl::string_view text) {
  if (IsUtf8(text)) return std::string(text);
  notes_->Add("invalid_utf8", "texts of frames are not UTF-8; the bytes that are not show as '?'");
  return ToUtf8(text);
}

}  // namespace ashlar::formats
