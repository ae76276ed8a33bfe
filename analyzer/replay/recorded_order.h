// Where the recorded device put segments, told by their addresses: a replay from an empty allocator puts them as it
// did, since of equal free blocks the versions before 2.13 take the lowest.
#ifndef ASHLAR_ANALYZER_REPLAY_RECORDED_ORDER_H_
#define ASHLAR_ANALYZER_REPLAY_RECORDED_ORDER_H_

#include "absl/types/span.h"
#include "allocator/device/address_space.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::replay {

// As NVIDIA's driver (driver_addresses.h) where its rule gives nine of ten ordinary segments, seen from the first; else
// ascending or descending where nine of ten lie where first fit from that end puts them beside those that there were;
// else the driver's too, since others allocate beside the program. Ascending where no segment tells. Of long traces the
// first thousand segments tell.
device::AddressOrder RecordedAddressOrder(absl::Span<const timeline::SegmentSpan> segments);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RECORDED_ORDER_H_
