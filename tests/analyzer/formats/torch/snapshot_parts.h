// Small PyTorch snapshots made by hand, part by part.
//
//   TorchSnapshotLoad(Top({Segment(0x1000, 512, {Block(0x1000, 512, "inactive")})}))
#ifndef ASHLAR_TESTS_ANALYZER_FORMATS_TORCH_SNAPSHOT_PARTS_H_
#define ASHLAR_TESTS_ANALYZER_FORMATS_TORCH_SNAPSHOT_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "tests/analyzer/formats/pickle/pickle_emitter.h"

namespace ashlar::formats::torch_parts {

using emit::Bool;
using emit::Dict;
using emit::Int;
using emit::Item;
using emit::List;
using emit::Negative;
using emit::None;
using emit::Pair;
using emit::Text;
using trace::Action;
using trace::BlockState;
using trace::Event;
using trace::Snapshot;

inline absl::StatusOr<Snapshot> TorchSnapshotLoad(const std::string& body) {
  return ReadTorchSnapshot(emit::File(body));
}

inline std::string ErrorOf(const std::string& body) {
  const auto snapshot = TorchSnapshotLoad(body);
  return snapshot.ok() ? "no error" : std::string(snapshot.status().message());
}

inline std::string Frame(const std::string& name, std::uint64_t line) {
  return Dict({{"name", Text(name)}, {"filename", Text("train.py")}, {"line", Int(line)}});
}

inline std::string Block(std::uint64_t address, std::uint64_t size, const std::string& state,
                         std::vector<Item> more = {}) {
  std::vector<Item> items = {{"address", Int(address)}, {"size", Int(size)}, {"state", Text(state)}};
  items.insert(items.end(), more.begin(), more.end());
  return Dict(items);
}

inline std::string Segment(std::uint64_t address, std::uint64_t size, const std::vector<std::string>& blocks,
                           std::vector<Item> more = {}) {
  std::vector<Item> items = {{"device", Int(0)}, {"address", Int(address)},       {"total_size", Int(size)},
                             {"stream", Int(0)}, {"segment_type", Text("large")}, {"blocks", List(blocks)}};
  items.insert(items.end(), more.begin(), more.end());
  return Dict(items);
}

inline std::string Top(const std::vector<std::string>& segments, const std::vector<std::string>& traces = {},
                       std::vector<Item> more = {}) {
  std::vector<Item> items = {{"segments", List(segments)}, {"device_traces", List(traces)}};
  items.insert(items.end(), more.begin(), more.end());
  return Dict(items);
}

inline std::string Entry(const std::string& action, std::vector<Item> more) {
  std::vector<Item> items = {{"action", Text(action)}};
  items.insert(items.end(), more.begin(), more.end());
  return Dict(items);
}
inline std::string Plain(const std::string& action, std::uint64_t addr, std::uint64_t size) {
  return Entry(action, {{"addr", Int(addr)}, {"size", Int(size)}, {"stream", Int(0)}});
}

inline std::vector<std::string> NoteNames(const Snapshot& snapshot) {
  std::vector<std::string> names;
  for (const trace::Note& note : snapshot.notes) names.push_back(absl::StrCat(note.name, " ", note.count));
  return names;
}

}  // namespace ashlar::formats::torch_parts

#endif  // ASHLAR_TESTS_ANALYZER_FORMATS_TORCH_SNAPSHOT_PARTS_H_
