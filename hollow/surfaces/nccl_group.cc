#include "hollow/surfaces/nccl_group.h"

#include <map>
#include <mutex>
#include <utility>

namespace ashlar::hollow {
namespace {

std::mutex g_handles_mutex;
std::map<const void*, std::shared_ptr<NcclCommunicator>>& Handles() {
  static auto* handles = new std::map<const void*, std::shared_ptr<NcclCommunicator>>;  // outlives every thread
  return *handles;
}

}  // namespace

std::shared_ptr<NcclCommunicator> NcclFind(const void* handle) {
  const std::lock_guard lock(g_handles_mutex);
  const auto found = Handles().find(handle);
  return found == Handles().end() ? nullptr : found->second;
}

NcclHandle NcclKeep(std::shared_ptr<NcclCommunicator> communicator) {
  const std::lock_guard lock(g_handles_mutex);
  const NcclHandle handle = communicator.get();
  Handles()[handle] = std::move(communicator);
  return handle;
}

std::shared_ptr<NcclCommunicator> NcclDrop(const void* handle) {
  const std::lock_guard lock(g_handles_mutex);
  const auto found = Handles().extract(handle);
  return found.empty() ? nullptr : std::move(found.mapped());
}

NcclGroup& NcclGroup::OfThread() {
  static thread_local NcclGroup group;
  return group;
}

NcclResult NcclGroup::End() {
  if (depth_ == 0) return NcclResult::kInvalidUsage;  // "ncclGroupEnd: not in a group call"
  return --depth_ > 0 ? NcclResult::kSuccess : MakeAll();
}

NcclResult NcclGroup::Drop() {
  if (depth_ == 0) return NcclResult::kInvalidUsage;
  if (--depth_ > 0) return NcclResult::kSuccess;
  calls_.clear();
  return MakeAll();
}

NcclResult NcclGroup::MakeAll() {
  const std::vector<Made> calls = std::exchange(calls_, {});
  const std::vector<std::shared_ptr<NcclCommunicator>> awaited = std::exchange(awaited_, {});
  NcclResult result = std::exchange(failed_, NcclResult::kSuccess);
  if (result != NcclResult::kSuccess) return result;  // NCCL, too, makes none of a group with a bad call
  for (const Made& made : calls) {
    const NcclResult one = made.communicator->Issue(made.call, made.stream);
    if (result == NcclResult::kSuccess) result = one;
  }
  for (const auto& communicator : awaited) {
    const NcclResult one = communicator->Ready(communicator->blocking());
    if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) result = one;
  }
  return result;
}

NcclResult NcclGroup::Add(std::shared_ptr<NcclCommunicator> communicator, NcclCall call, void* stream) {
  if (depth_ == 0) return communicator->Issue(call, stream);
  calls_.push_back({std::move(communicator), std::move(call), stream});
  return NcclResult::kSuccess;
}

NcclResult NcclGroup::Await(std::shared_ptr<NcclCommunicator> communicator) {
  if (depth_ == 0) return communicator->Ready(communicator->blocking());
  awaited_.push_back(std::move(communicator));
  return NcclResult::kSuccess;
}

NcclResult NcclGroup::Failed(NcclResult result) {
  if (depth_ > 0 && failed_ == NcclResult::kSuccess) failed_ = result;
  return result;
}

}  // namespace ashlar::hollow
