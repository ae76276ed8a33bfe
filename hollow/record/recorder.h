// The rows of a process: what it allocates on devices and gives back, in the order in which it did so, into the file
// native-PID.log of the folder that ASHLAR_RECORD names (docs/guide/record.md has the rows). Nothing is recorded
// without that variable. In a process that has PyTorch, whose own history says more, a call is told with the place that
// made it and no other frame: whose memory it is.
//
//   const OwnCall call;                                   // false inside of another one: the runtime calls the driver
//   if (call.is_recorded()) TellFree({Name::cudaFree, caller}, pointer);
//
// A free is told before it is made, an allocation afterwards, so that no address has two owners in the log, whatever
// other threads do. A child of a fork has a file of its own. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_RECORD_RECORDER_H_
#define ASHLAR_HOLLOW_RECORD_RECORDER_H_

#include <atomic>
#include <cstdint>

#include "hollow/interpose/stand_in.h"

namespace ashlar::record {

// Asks the driver about the calling thread's device, by the real functions: nothing of it is recorded.

int CurrentDevice();  // 0 where nobody can tell

struct DeviceBytes {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;  // 0: not known
};
DeviceBytes MemoryOfDevice();

using interpose::Name;

inline std::uint64_t NumberOf(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

// Unknown until the first call.
enum class Recording : int { kUnknown, kOff, kOn };
extern std::atomic<Recording> g_recording;
Recording StartRecording();

class OwnCall {
 public:
  bool is_recorded() const {
    if (!call_.is_outermost()) return false;
    const Recording recording = g_recording.load(std::memory_order_acquire);
    return recording == Recording::kOn || (recording == Recording::kUnknown && StartRecording() == Recording::kOn);
  }

 private:
  const interpose::OuterCall call_;
};

struct Caller {
  Name name;
  const void* address;  // that the call returns to
};

struct Asked {
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  int device = -1;  // -1: the thread's current one
};

void TellAllocation(const Caller& caller, const Asked& asked, std::uint64_t address);
void TellFailure(const Caller& caller, const Asked& asked, int result);
void TellFree(const Caller& caller, const void* pointer);
// The free that was just told of `pointer` did not succeed.
void TellKept(const void* pointer, int result);
void TellReset(const Caller& caller, int device);

// Memory without an address, and where it is mapped. Device -1: the host's.
void TellCreated(const Caller& caller, const Asked& asked, std::uint64_t handle);
struct Mapping {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t handle = 0;
};
void TellMapped(const Caller& caller, const Mapping& mapping);
void TellUnmapped(const Caller& caller, std::uint64_t address, std::uint64_t bytes);

}  // namespace ashlar::record

#endif  // ASHLAR_HOLLOW_RECORD_RECORDER_H_
