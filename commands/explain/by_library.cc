#include "commands/explain/by_library.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/formats/native/device_calls.h"
#include "analyzer/libraries/owners.h"

namespace ashlar::answers {
namespace {

// The innermost frame's: what called CUDA.
std::string FileOfCaller(const trace::StackTable& stacks, trace::StackId stack) {
  const absl::Span<const trace::FrameId> frames = stacks.stack(stack);
  return frames.empty() ? "" : stacks.frame(frames.front()).file;
}

std::optional<std::uint64_t> Setting(const trace::Snapshot& snapshot, const std::string& key) {
  if (!snapshot.settings.has_value()) return std::nullopt;
  const auto found = snapshot.settings->values.find(key);
  std::uint64_t bytes = 0;
  const bool is_known = found != snapshot.settings->values.end() && absl::SimpleAtoi(found->second, &bytes);
  return is_known ? std::optional(bytes) : std::nullopt;
}

void SortByBytes(std::vector<OwnedBytes>& owners) {
  std::stable_sort(owners.begin(), owners.end(),
                   [](const OwnedBytes& a, const OwnedBytes& b) { return a.bytes > b.bytes; });
}

// "1048576 2 libnccl.so.2"
std::optional<OwnedBytes> ReadOwned(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  OwnedBytes out;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &out.bytes) || !absl::SimpleAtoi(parts[1], &out.blocks)) {
    return std::nullopt;
  }
  out.file = std::string(parts[2]);
  out.owner = libraries::OwnerOf(out.file);
  return out;
}

}  // namespace

ByLibrary ByLibraryAt(const timeline::State& state, const trace::Snapshot& snapshot, int device) {
  std::map<std::string, OwnedBytes> by_file;
  for (const analyses::LiveStack& group : analyses::LiveStacks(state)) {
    const std::string file = FileOfCaller(snapshot.stacks, group.stack);
    OwnedBytes& of = by_file[file];
    of.bytes += group.bytes;
    of.blocks += group.blocks;
  }
  ByLibrary out;
  for (auto& [file, of] : by_file) {
    of.owner = libraries::OwnerOf(file);
    of.file = file;
    out.owners.push_back(std::move(of));
  }
  SortByBytes(out.owners);
  out.in_use_bytes = Setting(snapshot, formats::DeviceInUseKey(device));
  const std::optional<std::uint64_t> asked = Setting(snapshot, formats::DeviceAskedKey(device));
  if (out.in_use_bytes.has_value() && asked.has_value()) {
    out.rest_bytes = *out.in_use_bytes - std::min(*out.in_use_bytes, *asked);
  }
  return out;
}

std::optional<ByLibrary> ByLibraryBeside(const trace::Snapshot& snapshot, int device,
                                         std::optional<std::uint64_t> in_use_bytes) {
  if (!snapshot.settings.has_value()) return std::nullopt;
  ByLibrary out;
  const std::string prefix = trace::DeviceLibraryKey(device);
  const auto& values = snapshot.settings->values;
  std::uint64_t asked = 0;
  for (auto it = values.lower_bound(prefix); it != values.end() && absl::StartsWith(it->first, prefix); ++it) {
    std::optional<OwnedBytes> owned = ReadOwned(it->second);
    if (!owned.has_value()) continue;
    asked += owned->bytes;
    out.owners.push_back(*std::move(owned));
  }
  if (out.owners.size() < 2) return std::nullopt;
  SortByBytes(out.owners);
  if (in_use_bytes.has_value() && *in_use_bytes >= asked) {
    out.in_use_bytes = in_use_bytes;
    out.rest_bytes = *in_use_bytes - asked;
  }
  return out;
}

}  // namespace ashlar::answers
