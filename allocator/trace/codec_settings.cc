#include "allocator/trace/codec_settings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace ashlar::trace::codec {
namespace {

constexpr char kLargePagesAtStart[] = "large_pages_at_start";

const char* SegmentsKey(StateAt when) { return when == StateAt::kStart ? "segments_at_start" : "segments_at_end"; }

struct TraitFlag {
  const char* key;
  bool Traits::*trait;
};
constexpr TraitFlag kTraits[] = {
    {"has_time", &Traits::has_time},
    {"has_stacks", &Traits::has_stacks},
    {"has_requested_bytes", &Traits::has_requested_bytes},
    {"has_pool_ids", &Traits::has_pool_ids},
    {"has_labels", &Traits::has_labels},
    {"has_host", &Traits::has_host},
    {"has_settings", &Traits::has_settings},
    {"has_block_addresses", &Traits::has_block_addresses},
};

// Takes values out of a map, so that what is left is what nobody knows.
class UnreadValues {
 public:
  explicit UnreadValues(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  std::optional<std::string> Text(const std::string& key) {
    const auto it = values_.find(key);
    if (it == values_.end()) return std::nullopt;
    std::string value = std::move(it->second);
    values_.erase(it);
    return value;
  }
  bool Flag(const std::string& key) { return Text(key) == "1"; }
  std::optional<std::uint64_t> Number(const std::string& key) {
    const std::optional<std::string> text = Text(key);
    std::uint64_t value = 0;
    if (!text.has_value()) return std::nullopt;
    if (!absl::SimpleAtoi(*text, &value)) Reject(key, *text);
    return value;
  }
  double Fraction(const std::string& key) {
    const std::string text = Text(key).value_or("0");
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) Reject(key, text);
    return value;
  }
  void Reject(const std::string& key, const std::string& value) {
    status_.Update(absl::DataLossError(absl::StrCat("the recording's ", key, " is '", value, "', which cannot be")));
  }

  const std::map<std::string, std::string>& rest() const { return values_; }
  const absl::Status& status() const { return status_; }

 private:
  std::map<std::string, std::string> values_;
  absl::Status status_;
};

// "address:bytes,address:bytes,...", decimal.
std::string PrintPages(const std::vector<LargePage>& pages) {
  std::string out;
  for (const LargePage& page : pages) {
    absl::StrAppend(&out, out.empty() ? "" : ",", page.address, ":", page.size_bytes);
  }
  return out;
}

// What cannot be is told, and nothing comes of it.
std::vector<LargePage> ReadPages(absl::string_view text, absl::FunctionRef<void(absl::string_view)> reject) {
  std::vector<LargePage> out;
  for (const absl::string_view pair : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> numbers = absl::StrSplit(pair, ':');
    LargePage page;
    const bool is_read = numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &page.address) &&
                         absl::SimpleAtoi(numbers[1], &page.size_bytes);
    const std::uint64_t last_end = out.empty() ? 0 : out.back().address + out.back().size_bytes;
    if (!is_read || page.address < last_end || page.size_bytes == 0 || page.address + page.size_bytes < page.address) {
      reject(pair);
      return {};
    }
    out.push_back(page);
  }
  return out;
}

RecordedSettings ReadSettings(std::map<std::string, std::string> allocator_values, UnreadValues& values) {
  RecordedSettings out;
  out.conf = values.Text("conf").value_or("");
  out.max_split_size_bytes = values.Number("max_split_size_bytes");
  out.garbage_collection_threshold = values.Fraction("garbage_collection_threshold");
  out.expandable_segments = values.Flag("expandable_segments");
  out.values = std::move(allocator_values);
  return out;
}

RecordingInfo ReadRecording(UnreadValues& values) {
  RecordingInfo out;
  out.compat = values.Text("compat").value_or("");
  out.free_order = values.Text("free_order").value_or("");
  const std::uint64_t device = values.Number("device").value_or(0);
  if (device >= kMostDevices) values.Reject("device", absl::StrCat(device));
  out.device = static_cast<int>(device % kMostDevices);
  out.device_total_bytes = values.Number("device_total_bytes").value_or(0);
  out.limit_bytes = values.Number("limit_bytes");
  out.events_before = values.Number("events_before").value_or(0);
  out.is_complete = !values.Flag("was_incomplete");
  out.has_calls = values.Flag("has_calls");
  return out;
}

}  // namespace

bool RecordedHead::HasSegmentsAt(StateAt when) const { return recording_values.count(SegmentsKey(when)) > 0; }

std::vector<LargePage> RecordedHead::LargePagesAtStart() const {
  const auto text = recording_values.find(kLargePagesAtStart);
  return text == recording_values.end() ? std::vector<LargePage>{} : ReadPages(text->second, [](absl::string_view) {});
}

absl::Status RecordedHead::Apply(Snapshot& out) {
  UnreadValues values(std::move(recording_values));
  recording_values.clear();
  for (const StateAt when : {StateAt::kStart, StateAt::kEnd}) {
    if (values.Flag(SegmentsKey(when))) recording_values[SegmentsKey(when)] = "1";
  }
  const std::uint64_t devices = values.Number("devices").value_or(0);
  if (devices > kMostDevices) values.Reject("devices", absl::StrCat(devices));
  if (devices <= kMostDevices && devices > out.device_traces.size()) out.device_traces.resize(devices);
  for (const TraitFlag& flag : kTraits) out.traits.*flag.trait = values.Flag(flag.key);
  out.traits.generation = values.Text("generation").value_or("");
  if (values.Flag("is_recording")) {
    out.recording = ReadRecording(values);
    out.recording->facts = std::move(facts);
    const bool has_reservations = values.Flag(std::string(kReservationsAtStart));
    std::vector<LargePage> pages = ReadPages(values.Text(kLargePagesAtStart).value_or(""), [&](absl::string_view pair) {
      values.Reject(kLargePagesAtStart, std::string(pair));
    });
    if (has_reservations || !pages.empty()) {
      RecordedStart& at_start = out.recording->start.emplace();
      at_start.has_reservations = has_reservations;
      const auto end = reservations.begin() + static_cast<std::ptrdiff_t>(start_reservations);
      at_start.reservations.assign(reservations.begin(), end);
      at_start.has_segments = HasSegmentsAt(StateAt::kStart);
      at_start.segments = std::move(start);
      at_start.large_pages = std::move(pages);
    }
    // A recording says them at its start and at its end.
    std::sort(reservations.begin(), reservations.end());
    reservations.erase(std::unique(reservations.begin(), reservations.end()), reservations.end());
    out.recording->reservations = std::move(reservations);
  }
  if (out.traits.has_settings) out.settings = ReadSettings(std::move(allocator_values), values);
  for (const auto& [key, value] : values.rest()) {
    out.notes.push_back({"unknown_setting",
                         absl::StrCat("the recording says ", key, " = ", value, ", which this version does not know"),
                         1});
  }
  return values.status();
}

void PutHead(const Snapshot& head, Encoder& encoder, bool was_incomplete) {
  const auto put = [&encoder](absl::string_view key, absl::string_view value) {
    encoder.AddSetting(SettingOf::kRecording, key, value);
  };
  put("devices", absl::StrCat(head.device_traces.size()));
  for (const TraitFlag& flag : kTraits) {
    const bool is_set = flag.trait == &Traits::has_settings ? head.settings.has_value() : head.traits.*flag.trait;
    if (is_set) put(flag.key, "1");
  }
  if (!head.traits.generation.empty()) put("generation", head.traits.generation);
  if (head.recording.has_value()) {
    const RecordingInfo& recording = *head.recording;
    put("is_recording", "1");
    put("compat", recording.compat);
    put("free_order", recording.free_order);
    put("device", absl::StrCat(recording.device));
    put("device_total_bytes", absl::StrCat(recording.device_total_bytes));
    if (recording.limit_bytes.has_value()) put("limit_bytes", absl::StrCat(*recording.limit_bytes));
    if (was_incomplete) put("was_incomplete", "1");
    if (recording.has_calls) put("has_calls", "1");
    if (recording.events_before > 0) put("events_before", absl::StrCat(recording.events_before));
  }
  if (!head.settings.has_value()) return;
  const RecordedSettings& settings = *head.settings;
  put("conf", settings.conf);
  if (settings.max_split_size_bytes.has_value()) {
    put("max_split_size_bytes", absl::StrCat(*settings.max_split_size_bytes));
  }
  put("garbage_collection_threshold", absl::StrFormat("%.17g", settings.garbage_collection_threshold));
  if (settings.expandable_segments) put("expandable_segments", "1");
  for (const auto& [key, value] : settings.values) encoder.AddSetting(SettingOf::kAllocator, key, value);
}

void PutStart(const RecordedStart& start, Encoder& encoder) {
  encoder.AddReservations(start.reservations);
  if (start.has_reservations) encoder.AddSetting(SettingOf::kRecording, kReservationsAtStart, "1");
  if (!start.large_pages.empty()) {
    encoder.AddSetting(SettingOf::kRecording, kLargePagesAtStart, PrintPages(start.large_pages));
  }
  if (start.has_segments) return PutSegments(StateAt::kStart, start.segments, encoder);
  encoder.AddSegments(StateAt::kStart, start.segments);
}

void PutSegments(StateAt when, absl::Span<const SnapshotSegment> segments, Encoder& encoder) {
  encoder.AddSetting(SettingOf::kRecording, SegmentsKey(when), "1");
  encoder.AddSegments(when, segments);
}

}  // namespace ashlar::trace::codec
