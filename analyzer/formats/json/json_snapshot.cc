#include "analyzer/formats/json/json_snapshot.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/json/json_events.h"
#include "analyzer/formats/pickle/pickle_writer.h"
#include "analyzer/formats/torch/torch_snapshot.h"

namespace ashlar::formats {
namespace {

// Into a file of its own where it is long (SpooledBytes).
class SpoolSink final : public ByteSink {
 public:
  void Append(absl::string_view bytes) override { spool_.Append(bytes); }
  InputBytes Take() { return std::move(spool_).Take(); }

 private:
  SpooledBytes spool_;
};

class AsPickle final : public JsonEvents {
 public:
  explicit AsPickle(ByteSink& sink) : out_(sink) {}

  void Finish() { out_.Finish(); }

  bool start_object(std::size_t /*elements*/) override { return out_.BeginDict(), true; }
  bool end_object() override { return out_.EndDict(), true; }
  bool start_array(std::size_t /*elements*/) override { return out_.BeginList(), true; }
  bool end_array() override { return out_.EndList(), true; }
  bool key(std::string& name) override { return out_.Text(name), true; }
  bool Scalar(const JsonScalar& value) override {
    if (const auto* flag = std::get_if<bool>(&value)) {
      out_.Bool(*flag);
    } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
      out_.Signed(*number);
    } else if (const auto* above = std::get_if<std::uint64_t>(&value)) {
      out_.Unsigned(*above);
    } else if (const auto* real = std::get_if<double>(&value)) {
      out_.Float(*real);
    } else if (const auto* text = std::get_if<absl::string_view>(&value)) {
      out_.Text(*text);
    } else {
      out_.None();
    }
    return true;
  }

 private:
  pickle::PickleWriter out_;
};

}  // namespace

bool IsJsonSnapshot(absl::string_view bytes) {
  absl::string_view head = bytes.substr(0, kHeadBytes);
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  if (absl::ConsumePrefix(&head, "{")) {
    head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
    for (absl::string_view first :
         {"\"segments\"", "\"device_traces\"", "\"allocator_settings\"", "\"external_annotations\""}) {
      if (absl::StartsWith(head, first)) return true;
    }
    return false;
  }
  return absl::StartsWith(head, "[") && absl::StrContains(head, "\"total_size\"") &&
         absl::StrContains(head, "\"blocks\"");
}

absl::StatusOr<trace::Snapshot> ReadJsonSnapshot(absl::string_view bytes, const ReadLimits& limits) {
  SpoolSink sink;
  AsPickle pickle(sink);
  if (absl::Status status = ParseJson("snapshot as JSON", bytes, pickle); !status.ok()) return status;
  pickle.Finish();
  const InputBytes written = sink.Take();
  return ReadTorchSnapshot(written.view(), limits);
}

}  // namespace ashlar::formats
