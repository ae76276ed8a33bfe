// A workload's flags as data: the command line offers them, a test sets them, and a value that does not fit is named.
//
//   static constexpr FlagSpec kFlags[] = {{"batch", "4", "sequences of a batch"}};
//   Flags flags(kFlags);
//   flags.Set("batch", "8");
//   const std::int64_t batch = flags.Int("batch", 1, 4096);
//   if (!flags.status().ok()) return flags.status();
#ifndef ASHLAR_KERNELS_WORKLOADS_FLAGS_H_
#define ASHLAR_KERNELS_WORKLOADS_FLAGS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ashlar::kernels {

struct FlagSpec {
  absl::string_view name;
  absl::string_view value;  // unless set
  absl::string_view help;
};

class Flags {
 public:
  explicit Flags(absl::Span<const FlagSpec> specs);
  // The name must be one of the specs'.
  void Set(absl::string_view name, std::string value);

  // A value that is not of the kind or outside [low, high] is the status, and `low` or an empty text is returned.
  std::int64_t Int(absl::string_view name, std::int64_t low, std::int64_t high);
  double Real(absl::string_view name, double low, double high);
  bool Bool(absl::string_view name);
  const std::string& Text(absl::string_view name) const;

  // The first value that did not fit.
  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status);

 private:
  std::map<std::string, std::string, std::less<>> values_;
  absl::Status status_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_FLAGS_H_
