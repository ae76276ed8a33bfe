// How a rank gets its slot in a communicator: at once by a unique id, or by what the ranks of another communicator say.

#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "hollow/api/nccl/absent_peers.h"
#include "hollow/api/nccl/communicator.h"
#include "hollow/api/nccl/nccl.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

extern "C" int cudaDeviceGetPCIBusId(char* text, int size, int device);
extern "C" int ncclGetVersion(int* version);

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
  *result = made->TakePlannedRank();
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

// Where the others have no process, there is nobody to wait for.
bool NcclCommunicator::Meet() {
  if (!options_.are_all_here) absent_ = AbsentPeers::Of(place_);
  state_ = absent_ != nullptr ? State::kReady : State::kJoining;
  if (absent_ != nullptr) return true;
  std::string why;
  meeting_ = Meeting::Join(place_, &why);
  return meeting_ != nullptr || Fail(NcclResult::kSystemError, why) == NcclResult::kSuccess;
}

NcclResult NcclCommunicator::TakePlannedRank() {
  place_ = plan_(planned_by_ == nullptr ? std::vector<std::string>{} : planned_by_->heard);
  planned_by_.reset();
  if (place_.ranks == 0) return Fail(NcclResult::kInvalidUsage, "the ranks do not agree on the new communicator");
  place_.room_bytes = kRoomBytes;
  place_.about = BusId(options_.device);
  if (!Meet()) return error_;
  int version = 0;
  ncclGetVersion(&version);
  TheProcess().library_use.SetNcclVersion(version);
  use_ = TheProcess().library_use.AddCommunicator({.device = options_.device, .ranks = place_.ranks});
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
    if (TakePlannedRank() != NcclResult::kSuccess) return error_;
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

// NCCL: unique ids, and how communicators are made and given back.

namespace {

// A unique id is this and 32 hexadecimal digits, which are the meeting's name.
constexpr char kIdPrefix[] = "ashlar-nccl-";
constexpr std::size_t kDigits = 32;

NcclResult Bad(NcclResult result = NcclResult::kInvalidArgument) { return NcclGroup::OfThread().Failed(result); }

bool MakeId(NcclUniqueId* id) {
  unsigned char random[kDigits / 2];
  if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) return false;
  std::string text = kIdPrefix;
  for (const unsigned char byte : random) {
    constexpr char kHex[] = "0123456789abcdef";
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  *id = {};
  std::memcpy(id->bytes, text.data(), text.size());
  return true;
}

// Empty where the id is none of ours.
std::string NameOfId(const NcclUniqueId& id) {
  const std::size_t prefix = sizeof kIdPrefix - 1;
  if (std::memcmp(id.bytes, kIdPrefix, prefix) != 0) return "";
  const std::string name(id.bytes + prefix, strnlen(id.bytes + prefix, kDigits));
  const bool is_name = name.size() == kDigits && name.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_name ? name : "";
}

// The name of a communicator made out of another: the same for all its ranks, and no other's.
std::string ChildName(const std::string& parent, const std::string& how) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv
  for (const char letter : parent + "/" + how) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
  char text[24];
  std::snprintf(text, sizeof text, "-%016llx", static_cast<unsigned long long>(hash));
  return parent.substr(0, kDigits) + text;
}

// Reads a configuration, of any release; false where it is none. Null keeps `options` as they are.
bool ReadConfig(const NcclConfig* config, NcclCommunicator::Options* options) {
  if (config == nullptr) return true;
  if (config->magic != kNcclMagic || config->size < offsetof(NcclConfig, blocking) + sizeof config->blocking)
    return false;
  if (config->blocking == kNcclUndefined) return true;
  if (config->blocking != 0 && config->blocking != 1) return false;
  options->blocking = config->blocking == 1;
  return true;
}

NcclCommunicator::Options DefaultOptions() {
  NcclCommunicator::Options options{.device = CurrentDevice()};
  const char* blocking = std::getenv("NCCL_COMM_BLOCKING");  // which goes before the configuration, as in NCCL
  if (blocking != nullptr) options.blocking = std::strcmp(blocking, "0") != 0;
  return options;
}

NcclResult JoinById(NcclHandle* made, int ranks, const NcclUniqueId& id, int rank, const NcclConfig* config,
                    bool are_all_here = false) {
  if (made == nullptr) return Bad();
  *made = nullptr;
  NcclCommunicator::Options options = DefaultOptions();
  options.are_all_here = are_all_here;
  const std::string name = NameOfId(id);
  if (name.empty() || ranks < 1 || rank < 0 || rank >= ranks || !ReadConfig(config, &options)) return Bad();
  NcclResult result = NcclResult::kSuccess;
  auto communicator = NcclCommunicator::Join(
      {.folder = TheSettings().run_folder, .name = name, .ranks = ranks, .rank = rank}, options, &result);
  if (communicator == nullptr) return Bad(result);
  *made = NcclKeep(communicator);
  return NcclGroup::OfThread().Await(std::move(communicator));
}

// What a rank says at a split.
struct SplitWish {
  int color;
  int key;
};

Meeting::Place PlaceAfterSplit(const Meeting::Place& old, std::uint64_t number, int color,
                               const std::vector<std::string>& said) {
  std::vector<std::pair<int, int>> members;  // key, old rank
  for (int rank = 0; rank < static_cast<int>(said.size()); ++rank) {
    SplitWish wish{};
    std::memcpy(&wish, said[rank].data(), std::min(sizeof wish, said[rank].size()));
    if (wish.color == color) members.emplace_back(wish.key, rank);
  }
  std::sort(members.begin(), members.end());
  const auto mine =
      std::find_if(members.begin(), members.end(), [&](const auto& one) { return one.second == old.rank; });
  return {.folder = old.folder,
          .name = ChildName(old.name, "split " + std::to_string(number) + " " + std::to_string(color)),
          .ranks = static_cast<int>(members.size()),
          .rank = static_cast<int>(mine - members.begin())};
}

NcclResult Ready(const std::shared_ptr<NcclCommunicator>& communicator) {
  if (communicator == nullptr) return NcclResult::kInvalidArgument;
  const NcclResult ready = communicator->Ready(false);
  return ready == NcclResult::kInProgress ? NcclResult::kInvalidArgument : ready;
}

NcclResult Split(const void* handle, int color, int key, NcclHandle* made, const NcclConfig* config) {
  if (made == nullptr || (color < 0 && color != kNcclNoColor)) return Bad();
  *made = nullptr;
  const auto parent = NcclFind(handle);
  const NcclResult ready = Ready(parent);
  if (ready != NcclResult::kSuccess) return Bad(ready);
  NcclCommunicator::Options options{.device = parent->device(), .blocking = parent->blocking()};
  if (!ReadConfig(config, &options)) return Bad();
  const SplitWish wish{color, key};
  NcclCall call{.kind = NcclCall::Kind::kSplit};
  call.data.assign(reinterpret_cast<const char*>(&wish), sizeof wish);
  std::shared_ptr<NcclWork> work;
  const NcclResult result = parent->Issue(call, nullptr, &work);
  if (result != NcclResult::kSuccess) return Bad(result);
  if (color == kNcclNoColor) return NcclResult::kSuccess;
  const auto plan = [old = parent->place(), number = work->number, color](const std::vector<std::string>& said) {
    return PlaceAfterSplit(old, number, color, said);
  };
  auto communicator = NcclCommunicator::Join(std::move(work), plan, options);
  *made = NcclKeep(communicator);
  return NcclGroup::OfThread().Await(std::move(communicator));
}

NcclResult Shrink(const void* handle, const int* excluded, int excluded_count, NcclHandle* made,
                  const NcclConfig* config, int flags) {
  const auto parent = NcclFind(handle);
  if (parent == nullptr || made == nullptr || excluded == nullptr || excluded_count < 1) return Bad();
  *made = nullptr;
  const std::vector<int> out(excluded, excluded + excluded_count);
  Meeting::Place place = parent->place();
  std::string how = "shrink " + std::to_string(parent->NextShrink());
  const int old_rank = place.rank;
  place.ranks = 0;
  for (int rank = 0; rank < parent->ranks(); ++rank) {
    const bool stays = std::find(out.begin(), out.end(), rank) == out.end();
    if (rank == old_rank) {
      if (!stays) return Bad();
      place.rank = place.ranks;
    }
    if (stays) how += " " + std::to_string(rank);
    place.ranks += stays ? 1 : 0;
  }
  if (flags == kNcclShrinkAbort) {
    parent->Abort();
  } else if (const NcclResult ready = Ready(parent); ready != NcclResult::kSuccess) {
    return Bad(ready);
  }
  NcclCommunicator::Options options{.device = parent->device(), .blocking = parent->blocking()};
  if (!ReadConfig(config, &options)) return Bad();
  place.name = ChildName(place.name, how);
  NcclResult result = NcclResult::kSuccess;
  auto communicator = NcclCommunicator::Join(place, options, &result);
  if (communicator == nullptr) return Bad(result);
  *made = NcclKeep(communicator);
  return NcclGroup::OfThread().Await(std::move(communicator));
}

NcclResult JoinAll(NcclHandle* made, int count, const int* devices) {
  if (made == nullptr || count < 1 || count > TheSettings().devices) return Bad();
  NcclUniqueId id;
  if (!MakeId(&id)) return NcclResult::kSystemError;
  NcclGroup& group = NcclGroup::OfThread();
  group.Start();
  const int before = CurrentDevice();
  for (int rank = 0; rank < count; ++rank) {
    CurrentDevice() = devices == nullptr ? rank : devices[rank];
    made[rank] = nullptr;
    if (CurrentDevice() < 0 || CurrentDevice() >= TheSettings().devices) {
      group.Failed(NcclResult::kInvalidArgument);
    } else {
      JoinById(&made[rank], count, id, rank, nullptr, /*are_all_here=*/true);
    }
  }
  CurrentDevice() = before;
  return group.End();
}

}  // namespace

ASHLAR_SURFACE int ncclGetUniqueId(NcclUniqueId* id) {
  if (id == nullptr) return static_cast<int>(NcclResult::kInvalidArgument);
  return static_cast<int>(MakeId(id) ? NcclResult::kSuccess : NcclResult::kSystemError);
}

ASHLAR_SURFACE int ncclCommInitRankConfig(NcclHandle* made, int ranks, NcclUniqueId id, int rank, NcclConfig* config) {
  return static_cast<int>(JoinById(made, ranks, id, rank, config));
}

ASHLAR_SURFACE int ncclCommInitRank(NcclHandle* made, int ranks, NcclUniqueId id, int rank) {
  return static_cast<int>(JoinById(made, ranks, id, rank, nullptr));
}

// All ids are the same for all ranks, so the first is enough to meet by.
ASHLAR_SURFACE int ncclCommInitRankScalable(NcclHandle* made, int ranks, int rank, int ids, NcclUniqueId* id,
                                            NcclConfig* config) {
  if (ids < 1 || id == nullptr) return static_cast<int>(Bad());
  return static_cast<int>(JoinById(made, ranks, *id, rank, config));
}

ASHLAR_SURFACE int ncclCommInitAll(NcclHandle* made, int count, const int* devices) {
  return static_cast<int>(JoinAll(made, count, devices));
}

ASHLAR_SURFACE int ncclCommSplit(const void* handle, int color, int key, NcclHandle* made, NcclConfig* config) {
  return static_cast<int>(Split(handle, color, key, made, config));
}

ASHLAR_SURFACE int ncclCommShrink(const void* handle, int* excluded, int excluded_count, NcclHandle* made,
                                  NcclConfig* config, int flags) {
  return static_cast<int>(Shrink(handle, excluded, excluded_count, made, config, flags));
}

ASHLAR_SURFACE int ncclCommFinalize(const void* handle) {
  const auto communicator = NcclFind(handle);
  if (communicator == nullptr) return static_cast<int>(Bad());
  const NcclResult ready = communicator->Ready(communicator->blocking());
  if (ready != NcclResult::kSuccess) return static_cast<int>(Bad(ready));
  return static_cast<int>(communicator->Flush(communicator->blocking()));
}

ASHLAR_SURFACE int ncclCommDestroy(const void* handle) {
  if (handle == nullptr) return static_cast<int>(NcclResult::kSuccess);
  const auto communicator = NcclDrop(handle);
  if (communicator == nullptr) return static_cast<int>(Bad());
  communicator->Leave();
  return static_cast<int>(NcclResult::kSuccess);
}

ASHLAR_SURFACE int ncclCommAbort(const void* handle) {
  if (handle == nullptr) return static_cast<int>(NcclResult::kSuccess);
  const auto communicator = NcclDrop(handle);
  if (communicator == nullptr) return static_cast<int>(Bad());
  communicator->Abort();
  return static_cast<int>(NcclResult::kSuccess);
}

}  // namespace ashlar::hollow
