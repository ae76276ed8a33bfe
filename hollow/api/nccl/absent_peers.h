// The other ranks of a communicator where they have no process: `ashlar dry-run --ranks` runs one rank of a world at a
// time. A call on such a communicator is over at once.
//
//   std::unique_ptr<AbsentPeers> peers = AbsentPeers::Of(place);   // null: the others have processes
//   peers->Make(call);
//
// What the others say is a copy of what this rank says: an all-gather gives this rank's part once for each rank, so
// that counts and lengths agree. What only another rank can say is heard where that rank has run before, by the folder
// that ASHLAR_RANKS names: the n-th broadcast or scatter of a root, the n-th message of a pair. Where it has not, a
// broadcast leaves its buffer as it is, and what would be received is not known; but in a group in which this rank
// sends to itself, as an all-to-all by pairs does, each peer sends it the same.
//
// Only what is small and known is kept (NcclCall::Take). Communicators of several runs are the same where their names
// are. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_NCCL_ABSENT_PEERS_H_
#define ASHLAR_HOLLOW_API_NCCL_ABSENT_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hollow/api/nccl/communicator.h"
#include "hollow/model/rendezvous.h"

namespace ashlar::hollow {

class AbsentPeers {
 public:
  static std::unique_ptr<AbsentPeers> Of(const Meeting::Place& place);

  void Make(const NcclCall& call);

 private:
  AbsentPeers(std::string folder, NcclCall::RankSlot slot) : folder_(std::move(folder)), slot_(slot) {}
  // Of the file that has what the call's speaker says; empty: it has no single speaker.
  std::string FileOf(const NcclCall& call);
  bool SaysAlone(const NcclCall& call) const;
  void Keep(const std::string& file, const std::vector<std::byte>& bytes);
  std::string OwnMessage(const NcclCall& call) const;
  void Hear(const NcclCall& call, const std::string& file) const;

  const std::string folder_;
  const NcclCall::RankSlot slot_;
  std::mutex mutex_;
  std::uint64_t collectives_ = 0;
  std::map<int, std::uint64_t> sent_;      // by the rank that receives
  std::map<int, std::uint64_t> received_;  // by the rank that sends
  std::uint64_t kept_bytes_ = 0;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_NCCL_ABSENT_PEERS_H_
