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

// The copy that reads or writes `shape` of an array from a byte of a row on; false where it is none, or that lies
// outside.
bool ReadArrayCopy(const void* array, std::size_t byte, std::size_t row, void* other, std::size_t other_pitch,
                   std::size_t width, std::size_t height, bool is_to_array, CopyWork* copy);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_ARRAYS_H_
