// Gzip by content: any number of members one after another, as `cat a.gz b.gz` makes them.
//
// Errors name the byte offset in the compressed input. The limit is checked while inflating, so that a small file
// that unpacks to a huge one costs at most the limit.
#ifndef ASHLAR_ANALYZER_FORMATS_GZIP_H_
#define ASHLAR_ANALYZER_FORMATS_GZIP_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::readers {

bool LooksLikeGzip(absl::string_view bytes);

// Gives what it unpacks to `take`, part by part. Aborted where that says false.
absl::Status GunzipTo(absl::string_view bytes, std::uint64_t max_output_bytes,
                      absl::FunctionRef<bool(absl::string_view part)> take);

absl::StatusOr<std::string> Gunzip(absl::string_view bytes, std::uint64_t max_output_bytes);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_FORMATS_GZIP_H_
