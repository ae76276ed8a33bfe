// What the serving library knows of streams: whether something is being captured, and which handles stand for a stream
// that is gone.
//
// The stream of each thread (cudaStreamPerThread, or a default stream of a program compiled for it) is one handle for
// as many streams as there are threads. What one of them freed is not another's to use, so nothing is served on it.
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SERVE_STREAMS_H_
#define ASHLAR_HOLLOW_SERVE_STREAMS_H_

#include <cstdint>

#include "hollow/serve/driver.h"

namespace ashlar::serve {

inline constexpr std::uintptr_t kLegacyStream = 1;     // CU_STREAM_LEGACY
inline constexpr std::uintptr_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

inline std::uintptr_t NumberOf(Driver::Stream stream) { return reinterpret_cast<std::uintptr_t>(stream); }
inline Driver::Stream StreamOf(std::uintptr_t number) { return reinterpret_cast<Driver::Stream>(number); }
inline bool IsDefaultStream(Driver::Stream stream) { return NumberOf(stream) <= kPerThreadStream; }

// What null means to a function: the legacy default stream, or the one of each thread.
inline Driver::Stream Named(Driver::Stream stream, bool is_per_thread) {
  if (stream != nullptr) return stream;
  return StreamOf(is_per_thread ? kPerThreadStream : kLegacyStream);
}

// --- captures ---
// Of any stream of the process, by any thread.
bool IsCapturing();
void BeginCapture(Driver::Stream stream);
void EndCapture(Driver::Stream stream);

// --- streams that come and go ---
// A stream that is served. True where an older stream had its handle, whose work may not be done: the caller waits for
// the device before it uses what the older one freed.
bool MeetStream(Driver::Stream stream);
// It is about to be destroyed.
void RetireStream(Driver::Stream stream);

// Around a fork.
void LockStreams();
void UnlockStreams();

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_STREAMS_H_
