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

namespace {

constexpr int kHostType = 1, kArrayType = 3;  // CUmemorytype; 2 device, 4 unified

// A side of the driver's copies, which count bytes.
BoxSide DriverSide(int type, const void* host, std::uint64_t device, const void* array, std::uint64_t pitch,
                   std::uint64_t slice_rows) {
  BoxSide out;
  out.array = type == kArrayType ? array : nullptr;
  out.base = type == kHostType ? host : PointerTo(device);
  out.pitch = pitch;
  out.slice_rows = slice_rows;
  return out;
}

// A box that an array has a part in begins and ends at its elements.
Error CheckElements(const Box& box) {
  std::uint64_t element_bytes = 0;
  for (const BoxSide* side : {&box.to, &box.from}) {
    if (side->array == nullptr) continue;
    const DeviceArray* found = ArrayOf(side->array);
    if (found == nullptr || side->x_bytes % found->element_bytes != 0) return Error::kInvalidValue;
    if (box.width_bytes % found->element_bytes != 0) return Error::kInvalidValue;
    if (element_bytes != 0 && element_bytes != found->element_bytes) return Error::kInvalidValue;
    element_bytes = found->element_bytes;
  }
  return Error::kNone;
}

struct Rows {
  std::uint64_t begin = 0, pitch = 0, slice = 0;
};

bool Inside(std::uint64_t begin, std::uint64_t count, std::uint64_t all) {
  return begin <= all && count <= all - begin;
}

// The rows of a side; false where an array has not all of them.
bool RowsOf(const BoxSide& side, const Box& box, Rows* out) {
  Rows rows = {AddressOf(side.base), side.pitch, side.pitch * side.slice_rows};
  if (side.array != nullptr) {
    const DeviceArray* found = ArrayOf(side.array);
    if (found == nullptr) return false;
    const std::uint64_t height = std::max<std::uint64_t>(found->form.height, 1);
    const bool is_inside = Inside(side.x_bytes, box.width_bytes, found->row_bytes()) &&
                           Inside(side.y, box.height, height) &&
                           Inside(side.z, box.depth, std::max<std::uint64_t>(found->form.depth, 1));
    if (!is_inside) return false;
    rows = {found->address, found->row_bytes(), found->row_bytes() * height};
  }
  rows.begin += side.z * rows.slice + side.y * rows.pitch + side.x_bytes;
  *out = rows;
  return true;
}

}  // namespace

Error ReadBox(const abi::Memcpy3D& params, Box* box) {
  const auto side_of = [](const void* array, const abi::PitchedPtr& rows, const abi::Pos& pos) {
    const DeviceArray* found = array == nullptr ? nullptr : ArrayOf(array);
    return BoxSide{array, rows.ptr, rows.pitch, rows.ysize, pos.x * (found == nullptr ? 1 : found->element_bytes),
                   pos.y, pos.z};
  };
  // Of each side either an array or an address.
  if ((params.src_array != nullptr && params.src_ptr.ptr != nullptr) ||
      (params.dst_array != nullptr && params.dst_ptr.ptr != nullptr)) {
    return Error::kInvalidValue;
  }
  box->to = side_of(params.dst_array, params.dst_ptr, params.dst_pos);
  box->from = side_of(params.src_array, params.src_ptr, params.src_pos);
  // The width counts the elements of an array that has a part in it, else bytes.
  const DeviceArray* array = ArrayOf(params.src_array != nullptr ? params.src_array : params.dst_array);
  box->width_bytes = params.extent.width * (array == nullptr ? 1 : array->element_bytes);
  box->height = params.extent.height;
  box->depth = params.extent.depth;
  return CheckElements(*box);
}

Error ReadBox(const abi::DriverMemcpy3D& params, Box* box) {
  box->from = DriverSide(params.src_type, params.src_host, params.src_device, params.src_array, params.src_pitch,
                         params.src_height);
  box->from.x_bytes = params.src_x;
  box->from.y = params.src_y;
  box->from.z = params.src_z;
  box->to = DriverSide(params.dst_type, params.dst_host, params.dst_device, params.dst_array, params.dst_pitch,
                       params.dst_height);
  box->to.x_bytes = params.dst_x;
  box->to.y = params.dst_y;
  box->to.z = params.dst_z;
  box->width_bytes = params.width_bytes;
  box->height = params.height;
  box->depth = params.depth;
  const bool lacks_array = (params.src_type == kArrayType && params.src_array == nullptr) ||
                           (params.dst_type == kArrayType && params.dst_array == nullptr);
  return lacks_array ? Error::kInvalidValue : CheckElements(*box);
}

Error ReadBox(const abi::Memcpy2D& params, Box* box) {
  abi::DriverMemcpy3D whole = {};
  whole.src_x = params.src_x;
  whole.src_y = params.src_y;
  whole.src_type = params.src_type;
  whole.src_host = params.src_host;
  whole.src_device = params.src_device;
  whole.src_array = params.src_array;
  whole.src_pitch = params.src_pitch;
  whole.dst_x = params.dst_x;
  whole.dst_y = params.dst_y;
  whole.dst_type = params.dst_type;
  whole.dst_host = params.dst_host;
  whole.dst_device = params.dst_device;
  whole.dst_array = params.dst_array;
  whole.dst_pitch = params.dst_pitch;
  whole.width_bytes = params.width_bytes;
  whole.height = params.height;
  whole.depth = 1;
  return ReadBox(whole, box);
}

Error WorkOf(const Box& box, CopyWork* copy) {
  Rows to, from;
  if (!RowsOf(box.to, box, &to) || !RowsOf(box.from, box, &from)) return Error::kInvalidValue;
  copy->to = PointerTo(to.begin);
  copy->from = PointerTo(from.begin);
  copy->shape = {box.width_bytes, box.height, to.pitch, from.pitch, box.depth, to.slice, from.slice};
  return Error::kNone;
}

}  // namespace ashlar::hollow
