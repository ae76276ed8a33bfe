// JAX's device memory profiles (`jax.profiler.save_device_memory_profile("memory.prof")`): what lives on each device,
// by the stack of the program that made it. A profile is a pprof message, usually packed by gzip (unpack.h):
// https://github.com/google/pprof/blob/main/proto/profile.proto
//
//   absl::StatusOr<trace::Snapshot> snapshot = ReadMemoryProfile(bytes);
//
// It is read as a state without events, whose allocations are the device's own (trace::RecordsDeviceCalls) and whose
// origin is named (trace::kCallsOriginKey). A sample says how many buffers a stack made and their bytes in all, so that
// the single buffers are taken as equally large; addresses are made up. What programs were compiled to, which has no
// device, is a note.
//
// Pure functions, safe from any thread.
#ifndef ASHLAR_ANALYZER_FORMATS_PPROF_MEMORY_PROFILE_H_
#define ASHLAR_ANALYZER_FORMATS_PPROF_MEMORY_PROFILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

// Whether all of it is such a message.
bool IsPprof(absl::string_view bytes);

// InvalidArgument: a profile of something else, such as time or a host's heap. ResourceExhausted: over 10 million
// buffers.
absl::StatusOr<trace::Snapshot> ReadMemoryProfile(absl::string_view bytes, const ReadLimits& limits = {});

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_PPROF_MEMORY_PROFILE_H_
