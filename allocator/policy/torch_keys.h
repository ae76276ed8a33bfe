// Reads the values of PyTorch's keys into options, as the version of PyTorch reads them. Private to the parser
// (options.cc), whose table names the key of each.
//
// A number is what stands at the front of the value; where more stands there, a note says what was read.
#ifndef ASHLAR_ALLOCATOR_POLICY_TORCH_KEYS_H_
#define ASHLAR_ALLOCATOR_POLICY_TORCH_KEYS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/policy/conf_split.h"
#include "allocator/policy/options.h"

namespace ashlar::policy {

// "max_split_size_mb: '5' is too small: use ...".
absl::Status BadValue(const Setting& setting, absl::string_view allowed, absl::string_view problem = "is not allowed");
// True or False, and no other spelling.
absl::StatusOr<bool> ReadBool(const Setting& setting);

// How the version cuts texts.
Grammar GrammarOf(Compat compat);

absl::Status ReadMaxSplit(const Setting& setting, Options& options);
absl::Status ReadNonSplitRounding(const Setting& setting, Options& options);
absl::Status ReadLargeSegment(const Setting& setting, Options& options);
absl::Status ReadBypass(const Setting& setting, Options& options);
absl::Status ReadDivisions(const Setting& setting, Options& options);
absl::Status ReadThreshold(const Setting& setting, Options& options);
absl::Status ReadFraction(const Setting& setting, Options& options);
absl::Status ReadReserve(const Setting& setting, Options& options);
absl::Status ReadBackend(const Setting& setting, Options& options);

// Of keys that change no decision here: the value is one that PyTorch takes, and a note says so.
absl::Status CheckFlag(const Setting& setting, Options& options);
absl::Status CheckRegisterThreads(const Setting& setting, Options& options);
absl::Status CheckHostSize(const Setting& setting, Options& options);
absl::Status CheckHostSegment(const Setting& setting, Options& options);
absl::Status CheckClasses(const Setting& setting, Options& options);
// PyTorch's releases do not have the key: any value.
absl::Status CheckNothing(const Setting& setting, Options& options);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_TORCH_KEYS_H_
