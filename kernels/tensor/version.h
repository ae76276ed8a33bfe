// A version is a release of a library by its first two numbers; behaviours depend on it.
//
//   VersionOf("2.14.1") == Version{2, 14}; VersionOf("2") == nullopt
#ifndef ASHLAR_KERNELS_TENSOR_VERSION_H_
#define ASHLAR_KERNELS_TENSOR_VERSION_H_

#include <optional>
#include <utility>

#include "absl/strings/string_view.h"

namespace ashlar::kernels {

using Version = std::pair<int, int>;

// Of "2.14" or "2.14.1"; nullopt for every other form.
std::optional<Version> VersionOf(absl::string_view text);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_VERSION_H_
