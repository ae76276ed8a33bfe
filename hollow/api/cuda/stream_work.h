// Work that a stream was given and that is not over when the call returns, because other processes have part in it:
// NCCL's. All other work of a hollow device is over at the call.
//
// A surface that gives a stream such work adds it here with the bytes it will write. The runtime and driver surfaces
// ask here, WITHOUT holding a lock of their own, since Settle… waits for other processes:
//
//   before real bytes are read or written (copy, fill, free, ashlar_hollow_is_known, _know)    SettleRange(address,
//   bytes) cudaStreamSynchronize                    SettleStream(device, stream)     cudaStreamQuery  StreamIsDone
//   cudaDeviceSynchronize, cudaDeviceReset   SettleDevice(device)
//   cudaEventRecord                          EventRecorded(event, device, stream)
//   cudaStreamWaitEvent                      StreamWaits(device, stream, event)
//   cudaEventSynchronize                     SettleEvent(event)               cudaEventQuery   EventIsDone
//   cudaEventDestroy, cudaStreamDestroy      EventDestroyed, StreamDestroyed
//
// So a host that synchronises, or copies, waits for its peers exactly where its streams and events say that it depends
// on them; and bytes are right even where it copies without that. With no such work under way each costs one load.
//
// Settle… is false where the work failed (a rank died or did not come in time; one line was printed): answer
// cudaErrorLaunchFailure (719). What it would have written is unknown. IsDone is false for work that failed, as for a
// kernel that waits for ever, until its communicator is aborted.
//
// Thread rule: any thread. A forked child has no such work.
#ifndef ASHLAR_HOLLOW_API_CUDA_STREAM_WORK_H_
#define ASHLAR_HOLLOW_API_CUDA_STREAM_WORK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace ashlar::hollow {

struct ByteRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

class StreamWork {
 public:
  enum class State : std::uint8_t { kUnderWay, kDone, kFailed, kAborted };
  virtual ~StreamWork() = default;
  // Goes on as far as it can without waiting.
  virtual void Poll() = 0;
  // Waits until it is over, at most for the time that ranks wait for each other.
  virtual void Settle() = 0;

  State state() const { return state_.load(std::memory_order_acquire); }
  bool under_way() const { return state() == State::kUnderWay; }

 protected:
  void SetState(State state) { state_.store(state, std::memory_order_release); }

 private:
  std::atomic<State> state_{State::kUnderWay};
};

void AddStreamWork(int device, void* stream, std::shared_ptr<StreamWork> work, const std::vector<ByteRange>& writes);

namespace stream_work_internal {
extern std::atomic<bool> g_any;  // whether any work was added and not yet found over
bool SettleRange(std::uint64_t address, std::uint64_t bytes);
bool SettleStream(int device, void* stream);
bool SettleDevice(int device);
bool SettleEvent(void* event);
bool StreamIsDone(int device, void* stream);
bool EventIsDone(void* event);
void EventRecorded(void* event, int device, void* stream);
void StreamWaits(int device, void* stream, void* event);
void Forget(void* event_or_stream);
inline bool Any() { return g_any.load(std::memory_order_relaxed); }
}  // namespace stream_work_internal

inline bool SettleRange(std::uint64_t address, std::uint64_t bytes) {
  return !stream_work_internal::Any() || stream_work_internal::SettleRange(address, bytes);
}
inline bool SettleStream(int device, void* stream) {
  return !stream_work_internal::Any() || stream_work_internal::SettleStream(device, stream);
}
inline bool SettleDevice(int device) {
  return !stream_work_internal::Any() || stream_work_internal::SettleDevice(device);
}
inline bool SettleEvent(void* event) {
  return !stream_work_internal::Any() || stream_work_internal::SettleEvent(event);
}
inline bool StreamIsDone(int device, void* stream) {
  return !stream_work_internal::Any() || stream_work_internal::StreamIsDone(device, stream);
}
inline bool EventIsDone(void* event) {
  return !stream_work_internal::Any() || stream_work_internal::EventIsDone(event);
}
inline void EventRecorded(void* event, int device, void* stream) {
  if (stream_work_internal::Any()) stream_work_internal::EventRecorded(event, device, stream);
}
inline void StreamWaits(int device, void* stream, void* event) {
  if (stream_work_internal::Any()) stream_work_internal::StreamWaits(device, stream, event);
}
inline void EventDestroyed(void* event) {
  if (stream_work_internal::Any()) stream_work_internal::Forget(event);
}
inline void StreamDestroyed(void* stream) {
  if (stream_work_internal::Any()) stream_work_internal::Forget(stream);
}

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_STREAM_WORK_H_
