// Keeps the device's errors that no call could return: the first one that nobody has taken, and the reason why the
// device is lost, if it is.
//
//   DeviceErrors errors;
//   errors.Note(device.FreeSegment(address));
//   if (!errors.lost().ok()) return errors.lost();
//
// Thread rule: not thread-safe; the allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_DEVICE_ERRORS_H_
#define ASHLAR_ALLOCATOR_CORE_DEVICE_ERRORS_H_

#include <utility>

#include "absl/status/status.h"
#include "allocator/device/device.h"

namespace ashlar::core {

class DeviceErrors {
 public:
  // Keeps the first that is not OK.
  void Note(const absl::Status& status) { untold_.Update(status); }
  // The first since the last asked.
  absl::Status Take() { return std::exchange(untold_, absl::OkStatus()); }

  // Asks the device, after it failed, whether it is lost. It stays lost.
  void AskIfLost(device::Device& device) {
    if (lost_.ok()) lost_ = device.Lost();
  }
  // What the device said when it was lost.
  const absl::Status& lost() const { return lost_; }

 private:
  absl::Status untold_;
  absl::Status lost_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_DEVICE_ERRORS_H_
