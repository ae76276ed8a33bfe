#include "analyzer/readers/torch/torch_stacks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "analyzer/readers/torch/torch_record.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::readers {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr RecordKind kFrame = {"frames", FieldSet({Field::kName, Field::kFilename, Field::kLine})};

}  // namespace

StackReader::StackReader(const pickle::Document& document, FieldNames* names, NoteCounter* notes,
                         trace::StackTable* table)
    : document_(document), names_(names), notes_(notes), table_(table), known_(document.container_count(), 0) {}

absl::Status StackReader::Read(const Value& frames, trace::StackId* out) {
  if (frames.kind() != Kind::kList) return Within("frames", ExpectKind(frames, Kind::kList));
  std::uint32_t& known = known_[frames.payload()];
  if (known == 0) {
    if (absl::Status status = ReadStack(frames, out); !status.ok()) return status;
    known = *out + 1;
  }
  *out = known - 1;
  return absl::OkStatus();
}

absl::Status StackReader::ReadStack(const Value& frames, trace::StackId* out) {
  frames_.clear();
  pickle::ItemCursor items = document_.Items(frames);
  while (const Value* frame = items.Next()) {
    if (frame->kind() != Kind::kDict) return Within("frames[]", ExpectKind(*frame, Kind::kDict));
    std::uint32_t& known = known_[frame->payload()];
    if (known == 0) {
      trace::FrameId id = 0;
      if (absl::Status status = ReadFrame(*frame, &id); !status.ok()) return status;
      known = id + 1;
    }
    frames_.push_back(known - 1);
  }
  *out = frames_.empty() ? trace::kNoStack : table_->InternStack(frames_);
  return absl::OkStatus();
}

absl::Status StackReader::ReadFrame(const Value& frame, trace::FrameId* out) {
  const Record record(document_, frame, kFrame, names_, notes_);
  absl::string_view file, function;
  std::int64_t line = 0;
  if (absl::Status status = record.GetText(Field::kFilename, &file); !status.ok()) return Within("frames[]", status);
  if (absl::Status status = record.GetText(Field::kName, &function); !status.ok()) return Within("frames[]", status);
  if (absl::Status status = record.GetSigned(Field::kLine, &line); !status.ok()) return Within("frames[]", status);
  *out = table_->InternFrame(TextOf(file), line, TextOf(function));
  return absl::OkStatus();
}

std::string StackReader::TextOf(absl::string_view text) {
  if (IsUtf8(text)) return std::string(text);
  notes_->Add("invalid_utf8", "texts of frames are not UTF-8; the bytes that are not show as '?'");
  return ToUtf8(text);
}

}  // namespace ashlar::readers
