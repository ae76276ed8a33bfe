// A Device gives the allocator its memory. It has about a dozen virtual calls. A cache hit in the same stream makes
// none of them while no event is outstanding.
//
//   segments   AllocateSegment / FreeSegment            cuMemAlloc / cuMemFree
//   VMM        Reserve / ReleaseReservation             cuMemAddressReserve / cuMemAddressFree
//              Map / Unmap                              cuMemCreate + cuMemMap + cuMemSetAccess, a handle a page
//   memory     GetMemoryInfo                            cuMemGetInfo
//   events     RecordEvent / QueryEvent / ...           cuEventRecord / cuEventQuery / cuEventSynchronize
//              MakeStreamWait                           cuEventRecord, cuStreamWaitEvent
//   sharing    ExportPage                              cuMemExportToShareableHandle
//   captures   FindCapture / NodesBefore               cuStreamGetCaptureInfo, cuGraphNodeGetDependencies
//   contents   CopyToHost / CopyToDevice                cuMemcpyDtoHAsync / cuMemcpyHtoDAsync
//              AllocateHost / FreeHost                  cuMemHostAlloc / cuMemFreeHost
//
// Errors: kResourceExhausted means out of device memory and nothing else; the allocator then walks its ladder. Any
// other code is a device error and is passed to the caller unchanged. A failed call leaves this
// behind (docs/library/devices.md):
//   AllocateSegment, Reserve, Map              nothing: no byte, no page, no address
//   FreeSegment, Unmap, ReleaseReservation     the caller is rid of the range; the device keeps what was not taken back
//                                              and tries again before it obtains memory the next time
//   RecordEvent                                an event all the same, of a later point than asked, never of an earlier
//                                              one: done if its stream could be synchronised instead
//   QueryEvent                                 an event that is not done
//   SynchronizeEvent, SynchronizeStream        nothing is proven done
//   MakeStreamWait                             nothing waits
//   CopyToHost, CopyToDevice                   any contents where it should have written, and nothing elsewhere
// Thread rule: calls are serialised by the allocator that owns the device's memory.
#ifndef ASHLAR_DEVICE_H_
#define ASHLAR_DEVICE_H_

#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/units.h"

namespace ashlar {

struct MemoryInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

// A point in a stream's work, as returned by RecordEvent. Sequences rise over all streams.
struct DeviceEvent {
  Stream stream{};
  std::uint64_t sequence = 0;
};

// Where a stream stands in the graph that is captured from it. Nodes are the device's own, as numbers.
struct CapturePoint {
  std::uint64_t capture = 0;         // which one; streams that work on one graph say the same
  std::vector<std::uint64_t> nodes;  // what the stream is given next comes after all of these
};

class Device {
 public:
  virtual ~Device() = default;

  // A range of at least `size_bytes` of device memory; its address.
  virtual absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) = 0;
  virtual absl::Status FreeSegment(std::uint64_t address) = 0;

  // Address space without memory behind it.
  virtual absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) = 0;
  virtual absl::Status ReleaseReservation(std::uint64_t address) = 0;

  // Puts memory behind [address, address + size_bytes) of a reservation, one handle for each `page_bytes`. All or
  // nothing: on failure no page of the range is mapped.
  virtual absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) = 0;
  virtual absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) = 0;

  virtual MemoryInfo GetMemoryInfo() = 0;

  virtual DeviceEvent RecordEvent(Stream stream) = 0;
  // True when all work of the stream up to the event is done.
  virtual bool QueryEvent(const DeviceEvent& event) = 0;
  // Waits for the event, or for all work of the stream so far.
  virtual absl::Status SynchronizeEvent(const DeviceEvent& event) = 0;
  virtual absl::Status SynchronizeStream(Stream stream) = 0;
  // What `stream` is given from now on runs after what `awaited` was given so far; the caller does not wait.
  virtual absl::Status MakeStreamWait(Stream stream, Stream awaited) = 0;

  // The page that begins there, as a file descriptor that another process of the machine may map. It is the device's,
  // and closed when the page is unmapped.
  virtual absl::StatusOr<int> ExportPage(std::uint64_t /*address*/) {
    return absl::UnimplementedError("this device shares no pages with other processes");
  }

  // Contents of memory, which Allocator::Sleep keeps and gives back. Each copy takes its place in the stream's work,
  // and is done when the stream is synchronised; the host's side must stay until then. A device that has none of this
  // sleeps all the same where nothing is to be kept.
  virtual absl::Status CopyToHost(void* /*to*/, std::uint64_t /*address*/, std::uint64_t /*size_bytes*/,
                                  Stream /*stream*/) {
    return absl::UnimplementedError("this device does not copy its memory: let Sleep keep nothing");
  }
  virtual absl::Status CopyToDevice(std::uint64_t /*address*/, const void* /*from*/, std::uint64_t /*size_bytes*/,
                                    Stream /*stream*/) {
    return absl::UnimplementedError("this device does not copy its memory: let Sleep keep nothing");
  }
  // Memory of the host that such copies are fast with; nullptr: there is none. FreeHost takes it back.
  virtual void* AllocateHost(std::uint64_t size_bytes) { return ::operator new(size_bytes, std::nothrow); }
  virtual void FreeHost(void* memory) { ::operator delete(memory); }

  // While a stream is being captured into a graph, the allocator makes no call that returns memory, waits, or names an
  // event, and the device makes none on its own account.
  virtual void SetCapturing(bool is_capturing) = 0;
  // Of these the device answers what it can: nothing where no capture of the stream is under way, or it cannot tell.
  virtual std::optional<CapturePoint> FindCapture(Stream /*stream*/) { return std::nullopt; }
  // What comes right before the node in its graph.
  virtual std::optional<std::vector<std::uint64_t>> NodesBefore(std::uint64_t /*node*/) { return std::nullopt; }

  // Not OK, once and for good: what this device gave out is no longer there, as the text says why.
  virtual absl::Status Lost() const { return absl::OkStatus(); }
};

}  // namespace ashlar

#endif  // ASHLAR_DEVICE_H_
