#include "hollow/api/cuda/arrays.h"

#include <algorithm>
#include <iterator>

#include "hollow/api/cuda/memory.h"
#include "hollow/api/objects.h"

namespace ashlar::hollow {
namespace {

constinit Objects<DeviceArray> all_arrays(0x41);

struct ArrayFormat {
  int number, bits, kind;
};
constexpr int kSigned = 0, kUnsigned = 1, kFloat = 2;
constexpr ArrayFormat kFormats[] = {{0x01, 8, kUnsigned}, {0x02, 16, kUnsigned}, {0x03, 32, kUnsigned},
                                    {0x08, 8, kSigned},   {0x09, 16, kSigned},   {0x0A, 32, kSigned},
                                    {0x10, 16, kFloat},   {0x20, 32, kFloat}};

const ArrayFormat* FormatNumbered(int number) {
  const auto* it = std::find_if(std::begin(kFormats), std::end(kFormats),
                                [number](const ArrayFormat& format) { return format.number == number; });
  return it == std::end(kFormats) ? nullptr : it;
}

bool IsChannelCount(unsigned channels) { return channels == 1 || channels == 2 || channels == 4; }

}  // namespace

int FormatOf(int bits, int kind) {
  for (const ArrayFormat& format : kFormats) {
    if (format.bits == bits && format.kind == kind) return format.number;
  }
  return 0;
}

abi::ChannelFormat ChannelsOf(const abi::ArrayDescriptor& form) {
  abi::ChannelFormat out = {};
  const ArrayFormat* format = FormatNumbered(form.format);
  if (format == nullptr) return out;
  int* const bits[] = {&out.x, &out.y, &out.z, &out.w};
  for (unsigned i = 0; i < std::min(form.channels, 4U); ++i) *bits[i] = format->bits;
  out.kind = format->kind;
  return out;
}

Error MakeArray(Process& process, const abi::ArrayDescriptor& form, void** array) {
  constexpr std::uint64_t kMostOfSide = 1 << 20;
  const ArrayFormat* format = FormatNumbered(form.format);
  const bool is_small = form.width <= kMostOfSide && form.height <= kMostOfSide && form.depth <= kMostOfSide;
  if (array == nullptr || format == nullptr || form.width == 0 || !is_small || !IsChannelCount(form.channels)) {
    return Error::kInvalidValue;
  }
  const std::uint64_t element_bytes = static_cast<std::uint64_t>(format->bits / 8) * form.channels;
  const std::uint64_t rows = std::max<std::uint64_t>(form.height, 1) * std::max<std::uint64_t>(form.depth, 1);
  void* memory = nullptr;
  const Error error = Allocate(process, form.width * element_bytes * rows, MemoryKind::kDevice, &memory);
  if (error == Error::kNone) *array = all_arrays.Make(form, element_bytes, AddressOf(memory));
  return error;
}

Error FreeArray(Process& process, void* array) {
  if (array == nullptr) return Error::kNone;
  const DeviceArray* found = all_arrays.Find(array);
  if (found == nullptr) return Error::kInvalidHandle;
  const Error error = Free(process, PointerTo(found->address));
  all_arrays.Destroy(array);
  return error;
}

const DeviceArray* ArrayOf(const void* handle) { return all_arrays.Find(handle); }

bool ReadArrayCopy(const void* array, std::size_t byte, std::size_t row, void* other, std::size_t other_pitch,
                   std::size_t width, std::size_t height, bool is_to_array, CopyWork* copy) {
  const DeviceArray* found = ArrayOf(array);
  if (found == nullptr) return false;
  const std::uint64_t row_bytes = found->row_bytes();
  const std::uint64_t rows =
      std::max<std::uint64_t>(found->form.height, 1) * std::max<std::uint64_t>(found->form.depth, 1);
  if (byte > row_bytes || width > row_bytes - byte || row > rows || height > rows - row) return false;
  char* inside = static_cast<char*>(PointerTo(found->address)) + row * row_bytes + byte;
  copy->to = is_to_array ? inside : static_cast<char*>(other);
  copy->from = is_to_array ? static_cast<const char*>(other) : inside;
  copy->shape =
      is_to_array ? CopyShape{width, height, row_bytes, other_pitch} : CopyShape{width, height, other_pitch, row_bytes};
  return true;
}

}  // namespace ashlar::hollow
