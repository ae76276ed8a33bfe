// CUDA's arrays, which textures read: memory of the device of a form that only the device knows. Here they are rows.
//
//   MakeArray(process, {.width = 256, .height = 256, .depth = 0, .format = 0x20, .channels = 4}, &array);
//
// What a GPU takes for its tiles is not public: an array takes the bytes of its elements. Handles are the driver's and
// the runtime's alike. With the process's lock held. Source: cuda.h and driver_types.h of CUDA 13.0.
#ifndef ASHLAR_HOLLOW_API_CUDA_ARRAYS_H_
#define ASHLAR_HOLLOW_API_CUDA_ARRAYS_H_

#include <cstddef>
#include <cstdint>

#include "hollow/abi/cuda_types.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/model/error.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

struct DeviceArray {
  abi::ArrayDescriptor form = {};  // of the driver
  std::uint64_t element_bytes = 0;
  std::uint64_t address = 0;

  std::uint64_t row_bytes() const { return form.width * element_bytes; }
};

Error MakeArray(Process& process, const abi::ArrayDescriptor& form, void** array);
Error FreeArray(Process& process, void* array);
// nullptr where the handle is none. Without the lock, too.
const DeviceArray* ArrayOf(const void* handle);

// CUarray_format of so many bits a channel; 0: none has them. `kind`: cudaChannelFormatKind, signed, unsigned or float.
int FormatOf(int bits, int kind);
// What a channel's bits are: the other way round.
abi::ChannelFormat ChannelsOf(const abi::ArrayDescriptor& form);

// One side of a copy of a box: an array, or rows from an address on. `base`, `pitch` and `slice_rows` say nothing of an
// array, which has its own.
struct BoxSide {
  const void* array = nullptr;
  const void* base = nullptr;
  std::uint64_t pitch = 0;
  std::uint64_t slice_rows = 0;             // the distance of slices
  std::uint64_t x_bytes = 0, y = 0, z = 0;  // where the box begins
};
struct Box {
  BoxSide to, from;
  std::uint64_t width_bytes = 0, height = 0, depth = 1;
};
// The copies of the runtime and the driver as boxes; kInvalidValue where one is of no array, of half an element of it,
// or of two of other elements.
Error ReadBox(const abi::Memcpy3D& params, Box* box);
Error ReadBox(const abi::DriverMemcpy3D& params, Box* box);
Error ReadBox(const abi::Memcpy2D& params, Box* box);
// What moves which bytes; kInvalidValue where a part of the box lies outside of an array.
Error WorkOf(const Box& box, CopyWork* copy);
// Both steps.
template <typename Params>
Error ReadCopy(const Params& params, CopyWork* copy) {
  Box box;
  const Error error = ReadBox(params, &box);
  return error != Error::kNone ? error : WorkOf(box, copy);
}

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_ARRAYS_H_
