// The part of a recorder that gives what a ring holds as a whole recording.
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/core/output_file.h"
#include "allocator/core/recorder.h"
#include "allocator/trace/codec_settings.h"

namespace ashlar::core {

struct Recorder::RingContent {
  std::vector<Chunk> definitions;
  std::vector<Chunk> head;
  std::vector<Chunk> state;
  std::vector<Chunk> events;
  std::vector<Chunk> end;
};

// The state stands before the events that led to it: a file that was cut off then still has it. Definitions come first
// of all, in the order in which they were made: that is how they are numbered.
Recorder::RingContent Recorder::Content() {
  RingContent out;
  encoder_.Seal();
  target_ = &out.state;
  encoder_.AddSetting(trace::codec::SettingOf::kRecording, "events_before",
                      absl::StrCat(encoder_.event_count() - ring_events_));
  const std::shared_ptr<const Standing>& standing = ring_.empty() ? standing_ : ring_.front().before;
  trace::codec::PutStart(standing->start, encoder_);
  PutEnd();
  encoder_.AddFact(trace::fact::LimitSet{standing->limit_bytes});
  if (standing->settings.has_value()) encoder_.AddFact(*standing->settings);
  for (const trace::AnyFact& fact : standing->pools) encoder_.AddFact(fact);
  encoder_.Seal();
  target_ = &out.end;
  encoder_.End(ring_events_);
  target_ = nullptr;
  out.definitions = definitions_;
  out.head = head_;
  out.events.assign(ring_.begin(), ring_.end());
  return out;
}

absl::StatusOr<Recorder::RingContent> Recorder::ContentWhileStill() {
  if (file_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("this recording goes to ", file_->path(), "; flush it instead"));
  }
  RingContent content;
  absl::Status status;
  inspection_.WhileStill([&] {
    status = thrown_;
    if (status.ok()) content = Content();
  });
  if (!status.ok()) return status;
  return content;
}

absl::Status Recorder::Write(const std::string& path) {
  const absl::StatusOr<RingContent> content = ContentWhileStill();
  return content.ok() ? WriteContent(*content, OutputPath(path)) : content.status();
}

absl::StatusOr<std::string> Recorder::Bytes() {
  const absl::StatusOr<RingContent> content = ContentWhileStill();
  if (!content.ok()) return content.status();
  std::deque<std::string> headers;
  return absl::StrJoin(PartsOf(*content, headers), "");
}

std::optional<absl::Status> Recorder::WriteKept(const std::string& path) {
  if (!is_recording_ || file_ != nullptr) return std::nullopt;
  return WriteContent(Content(), path);
}

// The bytes of a file: headers, which `headers` holds, and payloads, which the content does.
std::vector<absl::string_view> Recorder::PartsOf(const RingContent& content, std::deque<std::string>& headers) {
  trace::codec::ChunkBytes bytes;
  std::vector<absl::string_view> parts = {headers.emplace_back(trace::codec::ChunkBytes::FileHeader())};
  for (const std::vector<Chunk>* chunks :
       {&content.definitions, &content.head, &content.state, &content.events, &content.end}) {
    for (const Chunk& chunk : *chunks) {
      parts.push_back(headers.emplace_back(bytes.HeaderOf(*chunk.payload)));
      parts.push_back(*chunk.payload);
    }
  }
  return parts;
}

absl::Status Recorder::WriteContent(const RingContent& content, const std::string& path) {
  std::deque<std::string> headers;
  return ReplaceFile(path, PartsOf(content, headers));
}

}  // namespace ashlar::core
