// The memory of tensors: one caching allocator, a current stream, and the figures that a run is asked for afterwards.
//
// After the first request that fails every further one is refused at once, without asking the allocator, so that a step
// written without a check at each line runs to its end in no time; its caller looks at status().
//
//   TensorMemory memory(&allocator, Stream{0});
//   memory.set_place("optimizer step", "bert.pooler.dense.weight");
//   ... a step ...
//   if (!memory.status().ok()) Print(memory.failure());
//
// One thread.
#ifndef ASHLAR_KERNELS_TENSOR_MEMORY_H_
#define ASHLAR_KERNELS_TENSOR_MEMORY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/core/caching_allocator.h"

namespace ashlar::kernels {

// What live bytes are for. A tensor is an activation until something else takes it over.
enum class Part : std::uint8_t { kWeights, kGradients, kOptimizer, kBatch, kActivations, kLibraries };
inline constexpr std::size_t kPartCount = 6;
absl::string_view PartName(Part part);                    // "weights", "gradients", ...
using PartBytes = std::array<std::uint64_t, kPartCount>;  // requested bytes, by Part

// Where a run is: the step's phase, and in it the module and the operation at work, or in an optimizer step the
// parameter and a tensor of it. Any may be empty.
struct Place {
  std::string phase;
  std::string owner;
  std::string tensor;
  std::string module;
  std::string operation;
};

struct RefusedRequest {
  std::uint64_t bytes = 0;
  Place place;
  std::uint64_t live_bytes = 0;  // requested and not freed when it failed
  PartBytes live_by_part = {};
};

class TensorMemory {
 public:
  TensorMemory(core::CachingAllocator* allocator, Stream stream) : allocator_(allocator), stream_(stream) {}
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  // nullptr for 0 bytes and once something has failed.
  core::Block* Allocate(std::uint64_t bytes, Part part);
  void Free(core::Block* block, std::uint64_t bytes, Part part);
  // The bytes are for something else from now on.
  void Move(std::uint64_t bytes, Part from, Part to);

  core::CachingAllocator& allocator() { return *allocator_; }
  Stream stream() const { return stream_; }
  void set_stream(Stream stream) { stream_ = stream; }

  // Who is at work, for failure(); texts that outlive the work.
  void set_phase(absl::string_view phase) { phase_ = phase; }
  void set_owner(absl::string_view owner) { owner_ = owner; }
  void set_tensor(absl::string_view tensor) { tensor_ = tensor; }
  void set_module(absl::string_view module) { module_ = module; }
  void set_operation(absl::string_view operation) { operation_ = operation; }
  absl::string_view phase() const { return phase_; }
  Place place() const {
    return {std::string(phase_), std::string(owner_), std::string(tensor_), std::string(module_),
            std::string(operation_)};
  }
  // What the request under way is for, as a sink of the allocator's events may ask; afterwards that of the last one.
  Part requested_part() const { return requested_part_; }
  absl::string_view owner() const { return owner_; }
  absl::string_view module() const { return module_; }
  absl::string_view operation() const { return operation_; }

  // OK, out of memory (kResourceExhausted), or the device's own error; also what Fail was told.
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  void Fail(absl::Status status);
  // The request that failed, once one has.
  const std::optional<RefusedRequest>& failure() const { return failure_; }

  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }  // of requested bytes, since the start or ResetPeak
  const PartBytes& live_by_part() const { return live_; }
  const PartBytes& peak_by_part() const { return at_peak_; }
  absl::string_view peak_phase() const { return peak_phase_; }
  void ResetPeak();

 private:
  core::CachingAllocator* allocator_;
  Stream stream_;
  absl::string_view phase_, owner_, tensor_, module_, operation_, peak_phase_;
  Part requested_part_ = Part::kActivations;
  absl::Status status_;
  std::optional<RefusedRequest> failure_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  PartBytes live_ = {};
  PartBytes at_peak_ = {};
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_MEMORY_H_
