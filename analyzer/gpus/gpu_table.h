// GPUs by name: what the driver says of each, what a process's CUDA context takes, and where each value is from. The
// one table: the estimator and the commands take it from here, and docs/guide/gpus.md prints it.
//
//   absl::StatusOr<Gpu> gpu = GpuNamed("a100-80gb");
//   gpu->total_bytes.value;                        // as cudaMemGetInfo gives it
//   ContextOf(*gpu, ModuleLoading::kLazy).source;  // "github.com/HiDream-ai/VAREdit issue 6"
//
// Sizes are bytes, clocks kHz. The table is constant: any thread.
#ifndef ASHLAR_ANALYZER_GPUS_GPU_TABLE_H_
#define ASHLAR_ANALYZER_GPUS_GPU_TABLE_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ashlar::gpus {

enum class Mark : std::uint8_t {
  kMeasured,   // read off such a card by a program, whose output was posted
  kPublished,  // in the vendor's documents
  kAssumed,    // another card's, or worked out: the source says how
};

absl::string_view MarkName(Mark mark);  // "measured", "published", "assumed"

struct GpuFact {
  std::uint64_t value = 0;
  Mark mark = Mark::kAssumed;
  absl::string_view source = {};
};

// When a process's kernels come into the device's memory.
enum class ModuleLoading : std::uint8_t {
  kEager,  // all when the context is made: before torch 1.13
  kLazy,   // each when it is first called (CUDA_MODULE_LOADING=LAZY): from torch 1.13 on
};

// By it programs choose their kernels: cards of one compute capability run alike.
struct Capability {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Capability&) const = default;
};
std::string CapabilityText(Capability of);  // "8.6"

struct Gpu {
  absl::string_view name;         // of the table, as for --device
  absl::string_view driver_name;  // as cudaDeviceProp gives it
  absl::string_view library_gpu;  // whose library buffers: a name of kernels::GpuNamed
  int compute_major = 0;
  int compute_minor = 0;
  GpuFact total_bytes;  // as cudaMemGetInfo gives it
  GpuFact sm_count;
  GpuFact l2_bytes;
  GpuFact clock_khz;
  GpuFact memory_clock_khz;
  GpuFact memory_bus_bits;
  std::optional<GpuFact> eager_context_bytes = {};
  std::optional<GpuFact> lazy_context_bytes = {};
  // Its memory is the host's own: cudaMemGetInfo gives the host's MemFree as free, which has neither other programs'
  // memory nor the page cache (github.com/unslothai/unsloth pull request 10704, measured on a GB10).
  bool has_unified_memory = false;

  constexpr Capability capability() const { return {compute_major, compute_minor}; }
};

// What follows from the compute capability.
struct GpuLimits {
  GpuFact shared_per_block_optin;  // bytes a block may have after cudaFuncSetAttribute
  GpuFact shared_per_sm;           // bytes
  GpuFact threads_per_sm;
};

// What a card does in a second at most, worked out of its clocks: no program reaches all of it.
struct GpuSpeed {
  GpuFact operations;         // floating-point ones of 32 bits
  GpuFact narrow_operations;  // of matrix products of 16 bits, which add up in 32: of tensor cores where there are any
  GpuFact memory_bytes;       // to and from the device's memory
};

// Least memory first.
absl::Span<const Gpu> Gpus();

// "V100-16GB", "rtx 4090", "NVIDIA H100 80GB HBM3": letters' case, blanks, '-' and '_' do not count, and a name without
// its memory will do where one card has it. Errors list the names.
absl::StatusOr<Gpu> GpuNamed(absl::string_view name);

// The one with the host's memory that has about as much (releases of its system leave up to 4 % more or less), where no
// other card is nearer; nullptr: none.
const Gpu* UnifiedMemoryGpu(std::uint64_t total_bytes);

// A card that no program of CUDA runs on: whether something fits is all that can be asked of it.
struct CardMemory {
  absl::string_view name;
  GpuFact total_bytes;  // as PyTorch prints it
};
absl::Span<const CardMemory> OtherCards();
// By the rules of GpuNamed; nullptr: it is none of these.
const CardMemory* OtherCardNamed(absl::string_view name);

// "A10, A100-40GB, ...": in the table's order.
std::string GpuNames();

GpuLimits LimitsOf(const Gpu& gpu);
GpuSpeed SpeedOf(const Gpu& gpu);

// The card's own, else UnknownContext.
GpuFact ContextOf(const Gpu& gpu, ModuleLoading loading);
// The card that stands for one that is not named, and nothing but its memory known. That of hollow/process/settings.h.
inline constexpr absl::string_view kUsualCard = "A100-80GB";
// The context that stands for those that the table does not have: the V100's where all kernels are loaded, else the
// A100's. Marked as assumed.
GpuFact UnknownContext(ModuleLoading loading);
// The least and the most bytes of the contexts that the table has.
std::pair<std::uint64_t, std::uint64_t> KnownContexts(ModuleLoading loading);

// Every value of a card under its key of the file that a hollow device reads: what documents and reports print.
std::vector<std::pair<absl::string_view, GpuFact>> FactsOf(const Gpu& gpu);

}  // namespace ashlar::gpus

#endif  // ASHLAR_ANALYZER_GPUS_GPU_TABLE_H_
