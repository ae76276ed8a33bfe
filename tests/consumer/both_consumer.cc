// A program of somebody else that records itself and explains the recording: both libraries in one program.
#include <ashlar/ashlar.h>
#include <ashlar/explain.h>
#include <ashlar/tuner.h>

#include <cstdio>
#include <memory>

int main() {
  const std::unique_ptr<ashlar::Device> device = ashlar::MakeSimulatedDevice({.capacity_bytes = ashlar::kGiB});
  ashlar::Allocator allocator(device.get());
  const auto ring = ashlar::Recorder::Ring(allocator);
  if (!ring.ok()) return 1;
  ashlar::Tuner tuner(allocator, **ring);
  if (tuner.Look().text != "nothing is tried: 0 whole steps are seen") return 1;
  const auto buffer = ashlar::Buffer::Make(allocator, 300 * ashlar::kMiB, ashlar::Stream{0});
  if (!buffer.ok() || !allocator.DumpSnapshot("consumer_%p.ashlar").ok()) return 1;
  if (allocator.Allocate(ashlar::kGiB, ashlar::Stream{0}).ok() || !(*ring)->Write("consumer.ashlar").ok()) return 1;
  const absl::StatusOr<std::string> text = ashlar::ExplainFile("consumer.ashlar");
  if (!text.ok() || text->find("300.00 MiB") == std::string::npos) {
    std::fprintf(stderr, "consumer: %s\n", text.status().ToString().c_str());
    return 1;
  }
  std::printf("the recording is explained\n");
  return 0;
}
