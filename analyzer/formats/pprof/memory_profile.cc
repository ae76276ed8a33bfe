#include "analyzer/formats/pprof/memory_profile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/formats/native/device_calls.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

// The fields of a protobuf message, one after another: https://protobuf.dev/programming-guides/encoding
class ProtoFields {
 public:
  explicit ProtoFields(absl::string_view bytes) : left_(bytes) {}

  // false: there is no other, or none that can be read (is_whole() tells).
  bool Next() {
    if (left_.empty()) return false;
    std::uint64_t tag = 0;
    is_whole_ = Varint(left_, tag) && Value(tag & 7);
    number = tag >> 3;
    return is_whole_;
  }
  bool is_whole() const { return is_whole_; }

  // A list of numbers is packed into one field, or has one field a number.
  bool AppendTo(std::vector<std::uint64_t>& out) const {
    if (!is_text) return out.push_back(value), true;
    for (absl::string_view rest = text; !rest.empty();) {
      std::uint64_t next = 0;
      if (!Varint(rest, next)) return false;
      out.push_back(next);
    }
    return true;
  }

  std::uint64_t number = 0;
  bool is_text = false;  // bytes or a message; else `value`
  absl::string_view text = {};
  std::uint64_t value = 0;

 private:
  static bool Varint(absl::string_view& bytes, std::uint64_t& out) {
    out = 0;
    for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[0]);
      bytes.remove_prefix(1);
      out |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Value(std::uint64_t type) {
    constexpr std::uint64_t kVarint = 0, kEightBytes = 1, kText = 2, kFourBytes = 5;
    is_text = type == kText;
    if (type == kVarint) return Varint(left_, value);
    std::uint64_t bytes = type == kEightBytes ? 8 : type == kFourBytes ? 4 : 0;
    if (is_text ? !Varint(left_, bytes) : bytes == 0) return false;
    if (bytes > left_.size()) return false;
    text = left_.substr(0, static_cast<std::size_t>(bytes));
    left_.remove_prefix(text.size());
    return true;
  }

  absl::string_view left_;
  bool is_whole_ = true;
};

struct ValueType {
  std::uint64_t type = 0, unit = 0;  // texts
};

struct ProfileLabel {
  std::uint64_t key = 0, text = 0;
};

struct Sample {
  std::vector<std::uint64_t> locations = {};  // innermost first
  std::vector<std::uint64_t> values = {};     // one a type
  std::vector<ProfileLabel> labels = {};
};

struct Line {
  std::uint64_t function = 0, line = 0;
};

struct Function {
  std::uint64_t name = 0, file = 0;  // texts
};

struct Profile {
  std::vector<ValueType> types = {};
  std::vector<Sample> samples = {};
  absl::flat_hash_map<std::uint64_t, std::vector<Line>> locations = {};
  absl::flat_hash_map<std::uint64_t, Function> functions = {};
  std::vector<absl::string_view> texts = {};

  absl::string_view Text(std::uint64_t index) const {
    return index < texts.size() ? texts[index] : absl::string_view();
  }
};

// The numbers of a flat message, by field number.
template <std::size_t kCount>
bool ReadNumbers(absl::string_view message, std::uint64_t (&out)[kCount]) {
  ProtoFields fields(message);
  while (fields.Next()) {
    if (fields.number < kCount && !fields.is_text) out[fields.number] = fields.value;
  }
  return fields.is_whole();
}

bool ReadSample(absl::string_view message, Sample& out) {
  constexpr std::uint64_t kLocation = 1, kValue = 2, kLabel = 3;
  ProtoFields fields(message);
  while (fields.Next()) {
    if (fields.number == kLocation && !fields.AppendTo(out.locations)) return false;
    if (fields.number == kValue && !fields.AppendTo(out.values)) return false;
    if (fields.number != kLabel) continue;
    std::uint64_t numbers[3] = {};
    if (!fields.is_text || !ReadNumbers(fields.text, numbers)) return false;
    out.labels.push_back({numbers[1], numbers[2]});
  }
  return fields.is_whole();
}

bool ReadLocation(absl::string_view message, Profile& out) {
  constexpr std::uint64_t kId = 1, kLine = 4;
  std::uint64_t id = 0;
  std::vector<Line> lines;
  ProtoFields fields(message);
  while (fields.Next()) {
    if (fields.number == kId) id = fields.value;
    if (fields.number != kLine) continue;
    std::uint64_t numbers[3] = {};
    if (!fields.is_text || !ReadNumbers(fields.text, numbers)) return false;
    lines.push_back({numbers[1], numbers[2]});
  }
  if (fields.is_whole()) out.locations[id] = std::move(lines);
  return fields.is_whole();
}

bool ReadPart(const ProtoFields& field, Profile& out) {
  constexpr std::uint64_t kSampleType = 1, kSample = 2, kLocation = 4, kFunction = 5, kText = 6, kLast = 20;
  if (field.number == 0 || field.number > kLast) return false;
  if (field.number <= kText && !field.is_text) return false;
  std::uint64_t numbers[5] = {};
  switch (field.number) {
    case kSampleType:
      if (!ReadNumbers(field.text, numbers)) return false;
      out.types.push_back({numbers[1], numbers[2]});
      return true;
    case kSample:
      return ReadSample(field.text, out.samples.emplace_back());
    case kLocation:
      return ReadLocation(field.text, out);
    case kFunction:
      if (!ReadNumbers(field.text, numbers)) return false;
      out.functions[numbers[1]] = {numbers[2], numbers[4]};
      return true;
    case kText:
      out.texts.push_back(field.text);
      return true;
    default:
      return true;
  }
}

std::optional<Profile> ReadProfile(absl::string_view bytes) {
  constexpr char kFirst = 0x0a;  // the sample types come first
  if (bytes.empty() || bytes[0] != kFirst) return std::nullopt;
  Profile out;
  ProtoFields fields(bytes);
  while (fields.Next()) {
    if (!ReadPart(fields, out)) return std::nullopt;
  }
  const bool is_one = fields.is_whole() && !out.types.empty() && !out.texts.empty() && out.texts.front().empty();
  return is_one ? std::optional(std::move(out)) : std::nullopt;
}

// "gpu:0", "TFRT_CPU_0": its number is at the end.
std::optional<int> NumberOf(absl::string_view device) {
  const std::size_t last = device.find_last_not_of("0123456789");
  int out = 0;
  const absl::string_view digits = last == absl::string_view::npos ? device : device.substr(last + 1);
  const bool is_one = !digits.empty() && absl::SimpleAtoi(digits, &out) && out < LoggedCalls::kMostDevices;
  return is_one ? std::optional(out) : std::nullopt;
}

class ProfileReader {
 public:
  explicit ProfileReader(Profile profile) : profile_(std::move(profile)) {}

  absl::StatusOr<trace::Snapshot> Run() {
    const std::optional<std::size_t> space = IndexOf("space"), count = IndexOf("allocations");
    const bool is_jax = space.has_value() && count.has_value() && HasLabels();
    if (!is_jax) {
      return absl::InvalidArgumentError(
          "this is a profile (pprof), but not of a device's memory: JAX writes one by "
          "jax.profiler.save_device_memory_profile(\"memory.prof\")");
    }
    for (const Sample& sample : profile_.samples) {
      if (sample.values.size() != profile_.types.size()) continue;
      if (absl::Status status = Add(sample, sample.values[*space], sample.values[*count]); !status.ok()) return status;
    }
    Describe();
    return std::move(out_);
  }

 private:
  static constexpr std::uint64_t kMostBuffers = 10'000'000;

  std::optional<std::size_t> IndexOf(absl::string_view type) const {
    for (std::size_t i = 0; i < profile_.types.size(); ++i) {
      if (profile_.Text(profile_.types[i].type) == type) return i;
    }
    return std::nullopt;
  }
  absl::string_view LabelOf(const Sample& sample, absl::string_view key) const {
    for (const ProfileLabel& label : sample.labels) {
      if (profile_.Text(label.key) == key) return profile_.Text(label.text);
    }
    return {};
  }
  bool HasLabels() const {
    return profile_.samples.empty() || std::any_of(profile_.samples.begin(), profile_.samples.end(),
                                                   [this](const Sample& of) { return !LabelOf(of, "kind").empty(); });
  }

  absl::Status Add(const Sample& sample, std::uint64_t bytes, std::uint64_t count) {
    const absl::string_view device = LabelOf(sample, "device");
    if (device.empty()) {
      compiled_ += count;
      compiled_bytes_ += bytes;
      return absl::OkStatus();
    }
    if (bytes == 0 || count == 0) return absl::OkStatus();
    buffers_ += count;
    if (buffers_ > kMostBuffers || bytes > std::uint64_t{1} << 50) {
      return absl::ResourceExhaustedError(
          "this profile names more than 10 million buffers, or more than a PiB: it is damaged");
    }
    const int index = DeviceOf(device);
    const trace::StackId stack = StackOf(sample);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t size = bytes / count + (i < bytes % count ? 1 : 0);
      if (size == 0) continue;
      trace::SnapshotSegment segment;
      segment.device = index;
      segment.address = next_address_;
      segment.size_bytes = size;
      segment.stack = stack;
      segment.blocks.push_back({next_address_, size, size, trace::BlockState::kLive, stack});
      out_.segments.push_back(std::move(segment));
      next_address_ += size;
    }
    return absl::OkStatus();
  }

  int DeviceOf(absl::string_view name) {
    const auto known = devices_.find(std::string(name));
    if (known != devices_.end()) return known->second;
    int index = NumberOf(name).value_or(static_cast<int>(devices_.size()));
    while (std::any_of(devices_.begin(), devices_.end(), [index](const auto& of) { return of.second == index; }))
      ++index;
    devices_.emplace(name, index);
    return index;
  }

  trace::StackId StackOf(const Sample& sample) {
    std::vector<trace::FrameId> frames;
    for (const std::uint64_t id : sample.locations) {
      const auto location = profile_.locations.find(id);
      if (location == profile_.locations.end()) continue;
      for (const Line& line : location->second) {
        const auto function = profile_.functions.find(line.function);
        if (function == profile_.functions.end()) continue;
        frames.push_back(out_.stacks.InternFrame(ToUtf8(profile_.Text(function->second.file)),
                                                 static_cast<std::int64_t>(line.line),
                                                 ToUtf8(profile_.Text(function->second.name))));
      }
    }
    return frames.empty() ? trace::kNoStack : out_.stacks.InternStack(frames);
  }

  void Describe() {
    std::stable_sort(out_.segments.begin(), out_.segments.end(),
                     [](const auto& a, const auto& b) { return a.device < b.device; });
    int most = 0;
    for (const auto& [name, index] : devices_) most = std::max(most, index);
    out_.device_traces.resize(static_cast<std::size_t>(most) + 1);
    if (compiled_bytes_ > 0) {
      out_.notes.push_back({"compiled_programs",
                            absl::StrCat("compiled programs, ", FormatBytes(compiled_bytes_),
                                         " in all, of which the profile names no device: not counted here"),
                            compiled_});
    }
    DescribeDeviceCalls("a memory profile (pprof) of JAX", out_);
    for (const auto& [name, index] : devices_) out_.settings->values[trace::DeviceNameKey(index)] = ToPrintable(name);
  }

  Profile profile_;
  trace::Snapshot out_;
  std::map<std::string, int> devices_;
  std::uint64_t next_address_ = 0x1000;
  std::uint64_t buffers_ = 0, compiled_ = 0, compiled_bytes_ = 0;
};

}  // namespace

bool IsPprof(absl::string_view bytes) { return ReadProfile(bytes).has_value(); }

absl::StatusOr<trace::Snapshot> ReadMemoryProfile(absl::string_view bytes, const ReadLimits& /*limits*/) {
  std::optional<Profile> profile = ReadProfile(bytes);
  if (!profile.has_value())
    return absl::InvalidArgumentError("this is no profile (pprof), or one that was cut: fetch it again");
  return ProfileReader(*std::move(profile)).Run();
}

}  // namespace ashlar::formats
