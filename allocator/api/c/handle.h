// What a handle of the C interface is, and how its functions call C++: nothing that is thrown leaves them.
//
//   ashlar_status ashlar_poll(ashlar_allocator* a) { return ashlar::c::Call([&] { a->allocator.PollEvents(); }); }
//
// Threads: as the allocator.
#ifndef ASHLAR_ALLOCATOR_API_C_HANDLE_H_
#define ASHLAR_ALLOCATOR_API_C_HANDLE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar.h"
#include "ashlar/allocator.h"
#include "ashlar/device.h"
#include "ashlar/options.h"
#include "ashlar/recorder.h"
#include "ashlar/units.h"

namespace ashlar::c {

// The text of a thread's last failed call, and the numbers that Abseil's codes become.

// Keeps the text, and returns the number. Where no host memory is left for the text, it says that instead.
ashlar_status Fail(const absl::Status& status) noexcept;
// A struct whose size its caller did not set.
ashlar_status FailAtSize(const char* name) noexcept;

}  // namespace ashlar::c

struct ashlar_allocator {
  ashlar_allocator(std::unique_ptr<ashlar::Device> its_device, int its_ordinal, const ashlar::Options& options)
      : device(std::move(its_device)), ordinal(its_ordinal), conf(options.conf), allocator(device.get(), options) {}

  const std::unique_ptr<ashlar::Device> device;  // outlives the allocator
  const int ordinal;                             // of a GPU; -1 for other memory
  const std::string conf;
  ashlar::Allocator allocator;
  std::mutex recording_mutex;  // of the next
  std::unique_ptr<ashlar::Recorder> recording;
};

namespace ashlar::c {

inline Stream StreamOf(ashlar_stream stream) { return Stream{reinterpret_cast<std::uintptr_t>(stream)}; }
inline ashlar_stream PointerOf(Stream stream) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(Handle(stream)));
}
inline PoolId PoolOf(ashlar_pool pool) { return {pool.first, pool.second}; }
inline std::uint64_t AddressOf(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }
inline void* PointerOf(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

// Runs `act`, which returns a status of Abseil's, and makes one of ours.
template <typename Act>
ashlar_status Call(Act act) noexcept {
  try {
    const absl::Status status = act();
    return status.ok() ? ASHLAR_OK : Fail(status);
  } catch (const std::exception& thrown) {
    return Fail(absl::UnknownError(thrown.what()));
  } catch (...) {
    return Fail(absl::UnknownError("something was thrown that is no std::exception"));
  }
}

// A struct that may grow: the caller's has `struct_size` bytes, of which those that we know are filled.
template <typename Struct>
ashlar_status Fill(Struct* out, Struct value, const char* name) {
  if (out->struct_size < sizeof(std::size_t)) return FailAtSize(name);
  value.struct_size = out->struct_size;
  std::memcpy(static_cast<void*>(out), &value, out->struct_size < sizeof(value) ? out->struct_size : sizeof(value));
  return ASHLAR_OK;
}

// Makes an allocator behind a handle of the C interface. Threads: any; as getenv where `conf` is NULL.

// NULL: of the environment.
absl::StatusOr<Options> OptionsOf(const char* conf);
absl::StatusOr<std::unique_ptr<ashlar_allocator>> Open(const ashlar_open_options& wanted);

// The allocators that all integrations of a process share, one for each GPU.

bool IsOfProcess(const ashlar_allocator* allocator);

}  // namespace ashlar::c

#endif  // ASHLAR_ALLOCATOR_API_C_HANDLE_H_
