// Unpacks an input by its content, whatever its name: gzip, of any number of members one after another as `cat a.gz
// b.gz` makes them; xz and zstd, where the system has their libraries; zip, of the one member that can be meant. What
// `torch.save` writes is a zip file: its member is the pickle `data.pkl`.
//
//   if (IsPacked(bytes)) absl::StatusOr<std::string> unpacked = Unpack(bytes, kDefaultMaxInputBytes);
//
// Errors name the packing and the byte offset in the packed input. The limit is checked while unpacking, so that a
// small file that unpacks to a huge one costs at most the limit. Nothing that was unpacked is unpacked again.
#ifndef ASHLAR_ANALYZER_FORMATS_UNPACK_H_
#define ASHLAR_ANALYZER_FORMATS_UNPACK_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::formats {

// By the first six bytes.
bool IsPacked(absl::string_view bytes);

// Gives what it unpacks to `take`, part by part. Aborted where that says false; DataLoss: damaged or cut;
// ResourceExhausted: more than `max_output_bytes`; Unavailable: its library is not here; InvalidArgument: a zip file of
// which no one member is meant.
absl::Status UnpackTo(absl::string_view bytes, std::uint64_t max_output_bytes,
                      absl::FunctionRef<bool(absl::string_view part)> take);

absl::StatusOr<std::string> Unpack(absl::string_view bytes, std::uint64_t max_output_bytes);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_UNPACK_H_
