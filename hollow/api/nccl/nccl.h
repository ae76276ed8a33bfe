// The calls of a thread between ncclGroupStart and ncclGroupEnd, and the handles of communicators.
//
//   const NcclResult result = NcclGroup::OfThread().Add(communicator, call, stream);   // made at once outside a group
//
// Calls of a group are made at its end, in their order; what waits for other ranks, the making of communicators, is
// waited for after all of the group has been made. Thread rule: a group is its thread's own; handles are for any
// thread.
#ifndef ASHLAR_HOLLOW_API_NCCL_NCCL_H_
#define ASHLAR_HOLLOW_API_NCCL_NCCL_H_

#include <memory>
#include <vector>

#include "hollow/api/nccl/communicator.h"

namespace ashlar::hollow {

using NcclHandle = NcclCommunicator*;  // an ncclComm_t

// Null where the handle is none, or was destroyed.
std::shared_ptr<NcclCommunicator> NcclFind(const void* handle);
NcclHandle NcclKeep(std::shared_ptr<NcclCommunicator> communicator);
std::shared_ptr<NcclCommunicator> NcclDrop(const void* handle);

class NcclGroup {
 public:
  static NcclGroup& OfThread();

  void Start() { ++depth_; }
  NcclResult End();
  // Ends the group and makes none of its calls.
  NcclResult Drop();

  NcclResult Add(std::shared_ptr<NcclCommunicator> communicator, NcclCall call, void* stream);
  // Waits for it, at the end of the group where there is one, and never where it was asked not to block.
  NcclResult Await(std::shared_ptr<NcclCommunicator> communicator);
  // What a call outside of the calls above answers with; the end of a group answers with the first such.
  NcclResult Failed(NcclResult result);

 private:
  struct Made {
    std::shared_ptr<NcclCommunicator> communicator;
    NcclCall call;
    void* stream;
  };
  static void NoteOwn(std::vector<Made>& calls);  // NcclCall::own of each receive
  NcclResult MakeAll();

  int depth_ = 0;
  std::vector<Made> calls_;
  std::vector<std::shared_ptr<NcclCommunicator>> awaited_;
  NcclResult failed_ = NcclResult::kSuccess;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_NCCL_NCCL_H_
