// What NCCL takes of a device for a process's communicators, by its own rules. It is an interval: how many channels
// NCCL opens goes by the links between the GPUs, which nobody knows where there are none.
//
//   const NcclUse use{.version = 22809, .communicators = {{.ranks = 8, .has_collectives = true}}};
//   NcclBytes(use, {9, 0}).most_bytes
//
// The rules, from NCCL's sources and its list of environment variables:
//   - Each channel has a connection for each rank that it receives from: a buffer for each protocol on the receiver's
//     side (LL 512 KiB, LL128 4.69 MiB, Simple NCCL_BUFFSIZE, by default 4 MiB), and a head on the sender's. Both are
//     whole pages of 2 MiB: 10 and 2 MiB (src/transport/p2p.cc, src/init.cc). Two pages more a connection were seen.
//   - A ring receives from one rank; with the trees it is up to three (src/graph/connect.cc), of two ranks one.
//   - Whom a rank sends to or receives from itself has connections of its own, up to 32 channels each.
//   - With multicast (NVLS: from Hopper on, three ranks or more) there are buffers of 2 x 8 steps of 128 KiB for each
//     channel and rank, up to the granularity of multicast, 512 MiB (src/transport/nvls.cc); up to 2.20 these were 2 x
//     6 MiB.
//   - A suspended communicator has no connections. The rest stays: multicast's buffers, and before 2.30.3 what
//     channels have of their own (github.com/NVIDIA/nccl issue 2337, pull request 2060).
//   - What a communicator of one rank takes was measured on an H200 (docs/measurements/h200.md), and so was what the
//     first one takes beside that, for NCCL's kernels.
// GPUs that do not reach each other's memory have their buffers in the host's: nothing of a connection is sure there.
// Sizes are bytes.
#ifndef ASHLAR_ANALYZER_LIBRARIES_NCCL_MEMORY_H_
#define ASHLAR_ANALYZER_LIBRARIES_NCCL_MEMORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/gpus/gpu_table.h"

namespace ashlar::libraries {

struct BytesBetween {
  std::uint64_t least_bytes = 0;
  std::uint64_t most_bytes = 0;

  void Add(const BytesBetween& other) {
    least_bytes += other.least_bytes;
    most_bytes += other.most_bytes;
  }
};

struct CommunicatorUse {
  int ranks = 1;
  bool has_collectives = false;  // it was asked for all-reduce or its like
  int peers = 0;                 // that this rank sends to or receives from
  bool is_suspended = false;     // by ncclCommSuspend: its connections gave their buffers back
};

struct NcclUse {
  int version = 0;                                   // 22809 is 2.28.9; 0: not known
  std::map<std::string, std::string> settings = {};  // of the environment: "NCCL_BUFFSIZE" -> "8388608"
  std::vector<CommunicatorUse> communicators = {};
};

BytesBetween NcclBytes(const NcclUse& use, gpus::Capability capability);
// Of what it is worked out, in words: "NCCL 2.28.9, 2 communicators (8 ranks, collectives; 2 ranks, 1 peer), ...".
std::string NcclSource(const NcclUse& use);

}  // namespace ashlar::libraries

#endif  // ASHLAR_ANALYZER_LIBRARIES_NCCL_MEMORY_H_
