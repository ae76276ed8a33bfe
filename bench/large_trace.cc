// Makes a large input to measure the analyzer with: a training trace, the same recorded, or as PyTorch writes it, with
// one of some hundred stacks of 30 frames at each event.
//
//   large_trace 10000000 train.trace     10 million requests as text
//   large_trace 10000000 train.rmm       the same as RMM logs them
//   large_trace 10000000 train.ashlar    a recording of them: about 17 million events
//   large_trace 10000000 train.pickle    the same as a snapshot of PyTorch's
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/byte_sink.h"
#include "allocator/base/rng.h"
#include "allocator/trace/codec.h"
#include "analyzer/formats/plain/plain_trace.h"
#include "analyzer/formats/rmm/rmm_log.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/replay/request_replay.h"
#include "bench/endless_device.h"
#include "bench/request_traces.h"

namespace ashlar::bench {
namespace {

constexpr std::uint64_t kStacks = 300;

std::vector<trace::StackId> MakeStacks(trace::StackTable& out) {
  Rng rng(5);
  std::vector<trace::StackId> stacks;
  for (std::uint64_t i = 0; i < kStacks; ++i) {
    std::vector<trace::FrameId> frames;
    for (int depth = 0; depth < 30; ++depth) {
      const std::uint64_t frame = rng.Below(depth < 20 ? 40 : 400);
      frames.push_back(out.InternFrame(absl::StrCat("/opt/model/layers/block_", frame, ".py"),
                                       static_cast<std::int64_t>(frame), absl::StrCat("forward_", frame)));
    }
    stacks.push_back(out.InternStack(frames));
  }
  return stacks;
}

// Requests of one size come from one line.
void AddStacks(trace::Snapshot& snapshot) {
  const std::vector<trace::StackId> stacks = MakeStacks(snapshot.stacks);
  std::int64_t time_us = 1'700'000'000'000'000;
  for (trace::Event& event : snapshot.device_traces[0].Mutable()) {
    event.stack = stacks[event.size_bytes * 2'654'435'761U / 128 % kStacks];
    event.time_us = time_us += 7;
  }
  snapshot.traits.has_time = snapshot.traits.has_stacks = true;
}

// Into a file, as it comes.
class FileSink final : public ByteSink {
 public:
  explicit FileSink(std::ofstream& out) : out_(out) {}
  void Append(absl::string_view bytes) override {
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::ofstream& out_;
};

void WriteRmmLog(const trace::RequestTrace& requests, ByteSink& out) {
  formats::RmmLogWriter log(out);
  std::vector<std::uint64_t> bytes(requests.id_count, 0);
  const auto address = [](std::uint32_t id) { return 0x7f0a00000000 + 512 * std::uint64_t{id}; };
  for (const trace::Op& op : requests.requests) {
    if (op.kind == trace::OpKind::kAlloc) bytes[op.id] = op.bytes;
    const auto action = op.kind == trace::OpKind::kAlloc ? formats::RmmAction::kAllocate : formats::RmmAction::kFree;
    log.Write({.action = action, .address = address(op.id), .bytes = bytes[op.id], .stream = op.stream});
  }
}

absl::Status Make(std::size_t lines, const std::string& path, ByteSink& out) {
  std::string text = TrainingTrace(lines);
  if (absl::EndsWith(path, ".trace")) {
    out.Append(text);
    return absl::OkStatus();
  }
  absl::StatusOr<trace::RequestTrace> requests = formats::ParsePlainTrace(text);
  if (!requests.ok()) return requests.status();
  std::string().swap(text);
  if (absl::EndsWith(path, ".rmm")) {
    WriteRmmLog(*requests, out);
    return absl::OkStatus();
  }
  absl::StatusOr<trace::Snapshot> snapshot =
      replay::RecordRequests(*requests, {.policy = {}, .device = EndlessDevice(), .memory_fraction = {}});
  if (!snapshot.ok()) return snapshot.status();
  *requests = {};
  AddStacks(*snapshot);
  if (absl::EndsWith(path, ".pickle")) {
    snapshot->recording.reset();
    formats::WriteTorchSnapshot(*snapshot, out);
  } else {
    trace::Encode(*snapshot, out);
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::size_t lines = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &lines)) {
    std::cerr << "use: large_trace LINES OUT.trace|OUT.rmm|OUT.ashlar|OUT.pickle\n";
    return 2;
  }
  std::ofstream out(argv[2], std::ios::binary);
  FileSink sink(out);
  if (const absl::Status status = Make(lines, argv[2], sink); !status.ok()) {
    std::cerr << "large_trace: " << status.message() << "\n";
    return 1;
  }
  out.flush();
  return out.good() ? 0 : 1;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) { return ashlar::bench::Main(argc, argv); }
