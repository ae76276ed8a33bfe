#include "bench/request_traces.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/base/units.h"

namespace ashlar::bench {
namespace {

// Writes lines until there are enough; what comes later is dropped.
class Writer {
 public:
  explicit Writer(std::size_t lines) : left_(lines) { text_.reserve(lines * 18); }

  std::uint64_t Alloc(std::uint64_t bytes, std::uint64_t stream = 0) {
    const std::uint64_t id = next_id_++;
    if (Takes()) absl::StrAppend(&text_, "a ", id, " ", bytes, " ", stream, "\n");
    return id;
  }
  void Free(std::uint64_t id) {
    if (Takes()) absl::StrAppend(&text_, "f ", id, "\n");
  }
  bool is_full() const { return left_ == 0; }
  std::string Take() { return std::move(text_); }

 private:
  bool Takes() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }

  std::size_t left_;
  std::uint64_t next_id_ = 1;
  std::string text_;
};

constexpr int kLayers = 48;
constexpr int kTensorsPerLayer = 10;

// Bytes of the tensors of one layer: parts of batch x sequence x width, and some small ones.
std::vector<std::uint64_t> LayerSizes(Rng& rng) {
  constexpr std::array<std::uint64_t, 6> kUnits = {2 * kKiB, 48 * kKiB, 768 * kKiB, 3 * kMiB, 12 * kMiB, 36 * kMiB};
  std::vector<std::uint64_t> sizes;
  for (int i = 0; i < kTensorsPerLayer; ++i) {
    sizes.push_back(kUnits[rng.Below(kUnits.size())] + 4 * rng.Below(64));
  }
  return sizes;
}

void WriteStep(Writer& out, const std::vector<std::vector<std::uint64_t>>& layers) {
  std::vector<std::uint64_t> kept;
  for (const std::vector<std::uint64_t>& sizes : layers) {
    for (const std::uint64_t bytes : sizes) {
      const std::uint64_t scratch = out.Alloc(bytes / 2 + 1);
      kept.push_back(out.Alloc(bytes));
      out.Free(scratch);
    }
  }
  std::vector<std::uint64_t> gradients;
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    for (std::size_t i = layers[layer].size(); i-- > 0;) {
      const std::uint64_t gradient = out.Alloc(layers[layer][i]);
      if (i % 4 == 0) gradients.push_back(out.Alloc(layers[layer][i] / 4 + 512));
      out.Free(kept.back());
      kept.pop_back();
      out.Free(gradient);
    }
  }
  for (const std::uint64_t id : gradients) out.Free(id);
}

}  // namespace

std::string TrainingTrace(std::size_t lines) {
  Rng rng(11);
  Writer out(lines);
  std::vector<std::vector<std::uint64_t>> layers;
  for (int i = 0; i < kLayers; ++i) layers.push_back(LayerSizes(rng));
  for (const std::vector<std::uint64_t>& sizes : layers) {
    for (const std::uint64_t bytes : sizes) out.Alloc(bytes / 3 + 512);  // weights, optimizer state
  }
  while (!out.is_full()) WriteStep(out, layers);
  return out.Take();
}

std::string RandomTrace(std::size_t lines) {
  constexpr std::size_t kMostLive = 4000;
  Rng rng(12);
  Writer out(lines);
  std::vector<std::uint64_t> live;
  while (!out.is_full()) {
    if (live.size() == kMostLive || (!live.empty() && rng.Below(100) < 48)) {
      const std::size_t victim = rng.Below(live.size());
      out.Free(std::exchange(live[victim], live.back()));
      live.pop_back();
      continue;
    }
    const std::uint64_t magnitude = std::uint64_t{256} << rng.Below(16);  // 256 B .. 16 MiB
    live.push_back(out.Alloc(magnitude + rng.Below(magnitude), rng.Below(8) == 0 ? 1 : 0));
  }
  return out.Take();
}

std::size_t TraceLines() {
  constexpr std::size_t kLines = 1'000'000;
  const char* text = std::getenv("ASHLAR_BENCH_LINES");
  std::size_t lines = 0;
  return text != nullptr && absl::SimpleAtoi(text, &lines) && lines > 0 ? lines : kLines;
}

}  // namespace ashlar::bench
