// How a rank gets its seat in a communicator: at once by a unique id, or by what the ranks of another communicator say.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "hollow/surfaces/nccl_communicator.h"

extern "C" int cudaDeviceGetPCIBusId(char* text, int size, int device);

namespace ashlar::hollow {
namespace {

constexpr std::chrono::milliseconds kLook{100};
// Of address space for the bytes of one rank that are on their way. A message has at most 64 MiB.
constexpr std::uint64_t kRoomBytes = std::uint64_t{256} << 20;

std::string BusId(int device) {
  char text[32] = {};
  return cudaDeviceGetPCIBusId(text, sizeof text - 1, device) == 0 ? text : "";
}

}  // namespace

std::shared_ptr<NcclCommunicator> NcclCommunicator::Join(const Meeting::Place& place, const Options& options,
                                                         NcclResult* result) {
  std::shared_ptr<NcclCommunicator> made(new NcclCommunicator);
  made->options_ = options;
  made->plan_ = [place](const std::vector<std::string>&) { return place; };
  const std::lock_guard lock(made->mutex_);
  *result = made->TakePlannedSeat();
  return *result == NcclResult::kSuccess ? made : nullptr;
}

std::shared_ptr<NcclCommunicator> NcclCommunicator::Join(std::shared_ptr<NcclWork> work, Plan plan,
                                                         const Options& options) {
  std::shared_ptr<NcclCommunicator> made(new NcclCommunicator);
  made->options_ = options;
  made->state_ = State::kPlanned;
  made->planned_by_ = std::move(work);
  made->plan_ = std::move(plan);
  return made;
}

NcclResult NcclCommunicator::TakePlannedSeat() {
  place_ = plan_(planned_by_ == nullptr ? std::vector<std::string>{} : planned_by_->heard);
  planned_by_.reset();
  if (place_.ranks == 0) return Fail(NcclResult::kInvalidUsage, "the ranks do not agree on the new communicator");
  place_.room_bytes = kRoomBytes;
  place_.about = BusId(options_.device);
  std::string why;
  meeting_ = Meeting::Join(place_, &why);
  if (meeting_ == nullptr) return Fail(NcclResult::kSystemError, why);
  state_ = State::kJoining;
  return NcclResult::kSuccess;
}

// Two ranks on one GPU are refused, as by NCCL (src/init.cc, "Duplicate GPU detected").
NcclResult NcclCommunicator::CheckDevices() {
  const char* allowed = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (allowed != nullptr && std::strcmp(allowed, "1") == 0) return NcclResult::kSuccess;
  std::map<std::string, int> ranks;
  for (int rank = 0; rank < place_.ranks; ++rank) {
    const std::string id = meeting_->About(rank);
    const auto [found, added] = ranks.try_emplace(id, rank);
    if (added || id.empty()) continue;
    return Fail(NcclResult::kInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " +
                                               std::to_string(found->second) + " both on CUDA device " + id);
  }
  return NcclResult::kSuccess;
}

// One look: what can be gone on with, without waiting.
NcclResult NcclCommunicator::Advance() {
  if (error_ != NcclResult::kSuccess || state_ == State::kReady || state_ == State::kLeft) return error_;
  if (state_ == State::kPlanned) {
    planned_by_->Poll();
    if (planned_by_->under_way()) return NcclResult::kInProgress;
    if (planned_by_->state() != StreamWork::State::kDone) {
      return Fail(NcclResult::kRemoteError, "the communicator that it comes from failed");
    }
    if (TakePlannedSeat() != NcclResult::kSuccess) return error_;
  }
  if (meeting_->AllCame()) {
    state_ = State::kReady;
    return CheckDevices();
  }
  if (Deadline::clock::now() - looked_ < kLook) return NcclResult::kInProgress;
  looked_ = Deadline::clock::now();
  for (int rank = 0; rank < place_.ranks; ++rank) {
    if (meeting_->Gone(rank)) return Fail(NcclResult::kRemoteError, "cannot begin: " + NameOf(*meeting_, rank));
  }
  return NcclResult::kInProgress;
}

NcclResult NcclCommunicator::Ready(bool wait) {
  const Deadline deadline = InSeconds(MeetingTimeoutSeconds());
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::shared_ptr<NcclWork> before = planned_by_;
    const std::uint32_t news = meeting_ == nullptr ? 0 : meeting_->News();
    const NcclResult result = Advance();
    if (result != NcclResult::kInProgress || !wait) return result;
    if (Deadline::clock::now() >= deadline) {
      std::string who;
      for (int rank = 0; meeting_ != nullptr && rank < place_.ranks; ++rank) {
        if (!meeting_->Came(rank)) who += (who.empty() ? "" : ", ") + NameOf(*meeting_, rank);
      }
      return Fail(NcclResult::kRemoteError, "cannot begin, waited too long: " + who);
    }
    if (planned_by_ != nullptr) {
      lock.unlock();
      before->Settle();
      lock.lock();
    } else if (before == nullptr) {
      lock.unlock();
      Pause(news, kLook);
      lock.lock();
    }
  }
}

}  // namespace ashlar::hollow
