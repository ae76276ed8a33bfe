// Copies and fills (cuda_streams.h).
#include <cstring>
#include <memory>
#include <mutex>

#include "hollow/launch/arena.h"
#include "hollow/launch/made_up.h"
#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/cuda_streams.h"
#include "hollow/surfaces/stream_work.h"

namespace ashlar::hollow {
namespace {

enum class Side : std::uint8_t { kHost, kDevice, kNowhere };

// Where the bytes lie; kNowhere: in the device's addresses, but not all of them allocated.
Side SideOf(const Process& process, std::uint64_t address, std::uint64_t bytes) {
  const Allocation* allocation = process.allocations.Holding(address);
  if (allocation == nullptr) return process.IsDeviceAddress(address) ? Side::kNowhere : Side::kHost;
  if (allocation->is_on_host()) return Side::kHost;
  std::uint64_t reached = allocation->address + allocation->size_bytes;
  while (reached < address + bytes) {  // mappings of one reservation lie side by side
    const Allocation* next = process.allocations.Holding(reached);
    if (next == nullptr || next->kind != MemoryKind::kMapped) return Side::kNowhere;
    reached = next->address + next->size_bytes;
  }
  return Side::kDevice;
}

std::uint64_t Span(const CopyShape& shape, std::uint64_t pitch) {
  return shape.height == 0 ? 0 : (shape.height - 1) * pitch + shape.width;
}

// One row, all of it real. Returns how many of the bytes are made up. Bytes of a device that are not known are written
// as --values says where the host reads them.
std::uint64_t CopyRow(Process& process, std::uint64_t to, Side to_side, std::uint64_t from, Side from_side,
                      std::uint64_t bytes) {
  if (from_side == Side::kHost) {
    std::memmove(PointerTo(to), PointerTo(from), bytes);
    if (to_side == Side::kDevice) process.known.Know(to, bytes);
    return 0;
  }
  if (to_side == Side::kDevice) {
    std::memmove(PointerTo(to), PointerTo(from), bytes);
    process.known.Carry(from, to, bytes);
    return 0;
  }
  const std::uint64_t known = process.known.CountKnown(from, bytes);
  if (known < bytes) WriteMadeUp(PointerTo(to), bytes);
  for (const auto& [begin, size_bytes] : process.known.RangesIn(from, bytes)) {
    std::memcpy(PointerTo(to + (begin - from)), PointerTo(begin), size_bytes);
  }
  return bytes - known;
}

// More than is real: nothing moves. Returns how many bytes the host would have read.
std::uint64_t DropCopy(Process& process, std::uint64_t to, Side to_side, const CopyShape& shape) {
  if (to_side == Side::kHost) return shape.width * shape.height;
  for (std::uint64_t row = 0; row < shape.height; ++row) process.known.Forget(to + row * shape.to_pitch, shape.width);
  return 0;
}

}  // namespace

bool ReadCopy3D(const abi::Memcpy3D& params, CopyWork* copy) {
  if (params.src_array != nullptr || params.dst_array != nullptr) return false;
  const auto at = [](const abi::PitchedPtr& base, const abi::Pos& pos) {
    return static_cast<char*>(base.ptr) + (pos.z * base.ysize + pos.y) * base.pitch + pos.x;
  };
  // Slices are rows at the distance of `ysize` rows: only where they follow one another is the box one shape.
  const bool is_flat = params.extent.depth <= 1 ||
                       (params.src_ptr.ysize == params.extent.height && params.dst_ptr.ysize == params.extent.height);
  if (!is_flat) return false;
  copy->to = at(params.dst_ptr, params.dst_pos);
  copy->from = at(params.src_ptr, params.src_pos);
  copy->shape = {params.extent.width, params.extent.height * params.extent.depth, params.dst_ptr.pitch,
                 params.src_ptr.pitch};
  return true;
}

Error CheckKind(const void* to, const void* from, const CopyShape& shape, int kind) {
  constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kDefault = 4;
  if (kind < 0 || kind > kDefault) return Error::kInvalidMemcpyDirection;
  if (shape.width == 0 || shape.height == 0) return Error::kNone;
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  const auto is_known = [&](const void* pointer) { return process.allocations.Holding(AddressOf(pointer)) != nullptr; };
  const bool has_target = (kind != kHostToDevice && kind != kDeviceToDevice) || is_known(to);
  const bool has_source = (kind != kDeviceToHost && kind != kDeviceToDevice) || is_known(from);
  return has_target && has_source ? Error::kNone : Error::kInvalidValue;
}

Error CopyBytes(void* to_pointer, const void* from_pointer, const CopyShape& shape) {
  if (shape.width == 0 || shape.height == 0) return Error::kNone;
  Process& process = TheProcess();
  const std::uint64_t to = AddressOf(to_pointer);
  const std::uint64_t from = AddressOf(from_pointer);
  const bool is_settled =
      SettleRange(from, Span(shape, shape.from_pitch)) && SettleRange(to, Span(shape, shape.to_pitch));
  if (!is_settled) return Error::kLaunchFailure;
  std::uint64_t made_up = 0;
  {
    std::unique_lock<std::mutex> lock(process.mutex);
    const Side to_side = SideOf(process, to, Span(shape, shape.to_pitch));
    const Side from_side = SideOf(process, from, Span(shape, shape.from_pitch));
    if (to == 0 || from == 0 || to_side == Side::kNowhere || from_side == Side::kNowhere) return Error::kInvalidValue;
    const bool is_on_host = to_side == Side::kHost && from_side == Side::kHost;
    if (is_on_host) lock.unlock();
    const bool is_real = is_on_host || shape.width * shape.height <= process.settings.real_bytes;
    if (!is_real) made_up = DropCopy(process, to, to_side, shape);
    for (std::uint64_t row = 0; is_real && row < shape.height; ++row) {
      made_up +=
          CopyRow(process, to + row * shape.to_pitch, to_side, from + row * shape.from_pitch, from_side, shape.width);
    }
  }
  if (made_up > 0) CountMadeUp(made_up);
  return Error::kNone;
}

Error FillBytes(void* to_pointer, std::uint32_t pattern, unsigned element_bytes, const CopyShape& shape) {
  if (shape.width == 0 || shape.height == 0) return Error::kNone;
  Process& process = TheProcess();
  const std::uint64_t to = AddressOf(to_pointer);
  if (!SettleRange(to, Span(shape, shape.to_pitch))) return Error::kLaunchFailure;
  const std::lock_guard<std::mutex> lock(process.mutex);
  const Side side = SideOf(process, to, Span(shape, shape.to_pitch));
  const bool is_known =
      process.allocations.Holding(to) != nullptr;  // memory of the host alone is not the device's to fill
  if (to == 0 || side == Side::kNowhere || !is_known) return Error::kInvalidValue;
  const bool is_small = side == Side::kHost || shape.width * shape.height <= process.settings.real_bytes;
  for (std::uint64_t row = 0; row < shape.height; ++row) {
    const std::uint64_t begin = to + row * shape.to_pitch;
    if (is_small) {
      for (std::uint64_t i = 0; i < shape.width; i += element_bytes) {
        std::memcpy(PointerTo(begin + i), &pattern, element_bytes);
      }
    }
    if (side == Side::kHost) continue;
    is_small ? process.known.Know(begin, shape.width) : process.known.Forget(begin, shape.width);
  }
  return Error::kNone;
}

// That all bytes of the copy are somewhere, before it is given to a stream.
static Error CheckSides(void* to, const void* from, const CopyShape& shape) {
  if (shape.width == 0 || shape.height == 0) return Error::kNone;
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  if (to == nullptr || SideOf(process, AddressOf(to), Span(shape, shape.to_pitch)) == Side::kNowhere) {
    return Error::kInvalidValue;
  }
  const bool reads = from != to;  // a fill names its own target
  if (reads && from == nullptr) return Error::kInvalidValue;
  return SideOf(process, AddressOf(from), Span(shape, shape.from_pitch)) == Side::kNowhere ? Error::kInvalidValue
                                                                                           : Error::kNone;
}

// Work that is done now tells its error; a graph's has nobody to tell.
template <typename Copy>
static Error GiveCopy(void* stream, NodeKind kind, Copy copy) {
  auto done = std::make_shared<Error>(Error::kNone);
  const Error error = GiveWork(stream, kind, [copy, done] { *done = copy(); });
  return error == Error::kNone ? *done : error;
}

Error CopyOnStream(void* to, const void* from, const CopyShape& shape, void* stream) {
  if (const Error error = CheckSides(to, from, shape); error != Error::kNone) return error;
  return GiveCopy(stream, NodeKind::kCopy, [=] { return CopyBytes(to, from, shape); });
}

Error FillOnStream(void* to, std::uint32_t pattern, unsigned element_bytes, const CopyShape& shape, void* stream) {
  const CopyShape itself = {shape.width, shape.height, shape.to_pitch, shape.to_pitch};
  if (const Error error = CheckSides(to, to, itself); error != Error::kNone) return error;
  return GiveCopy(stream, NodeKind::kFill, [=] { return FillBytes(to, pattern, element_bytes, shape); });
}

}  // namespace ashlar::hollow
