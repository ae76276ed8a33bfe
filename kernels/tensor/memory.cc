#include "kernels/tensor/memory.h"

#include <utility>

namespace ashlar::kernels {
namespace {

std::size_t Index(Part part) { return static_cast<std::size_t>(part); }

}  // namespace

absl::string_view PartName(Part part) {
  constexpr absl::string_view kNames[] = {"weights", "gradients", "optimizer", "batch", "activations", "libraries"};
  return kNames[Index(part)];
}

core::Block* TensorMemory::Allocate(std::uint64_t bytes, Part part) {
  if (bytes == 0 || !ok()) return nullptr;
  requested_part_ = part;
  absl::StatusOr<core::Block*> block = allocator_->Allocate(bytes, stream_);
  if (!block.ok()) {
    failure_ = RefusedRequest{bytes, place(), live_bytes_, live_};
    status_ = block.status();
    return nullptr;
  }
  live_[Index(part)] += bytes;
  live_bytes_ += bytes;
  if (live_bytes_ > peak_bytes_) {
    peak_bytes_ = live_bytes_;
    at_peak_ = live_;
    peak_phase_ = phase_;
  }
  return *block;
}

void TensorMemory::Free(core::Block* block, std::uint64_t bytes, Part part) {
  live_[Index(part)] -= bytes;
  live_bytes_ -= bytes;
  allocator_->Free(block);
}

void TensorMemory::Move(std::uint64_t bytes, Part from, Part to) {
  live_[Index(from)] -= bytes;
  live_[Index(to)] += bytes;
}

void TensorMemory::Fail(absl::Status status) {
  if (ok()) status_ = std::move(status);
}

void TensorMemory::ResetPeak() {
  peak_bytes_ = live_bytes_;
  at_peak_ = live_;
  peak_phase_ = phase_;
}

}  // namespace ashlar::kernels
