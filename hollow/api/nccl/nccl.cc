#include "hollow/api/nccl/nccl.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "hollow/api/nccl/reduce.h"
#include "hollow/api/real_library.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

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

void NcclGroup::NoteOwn(std::vector<Made>& calls) {
  std::map<const NcclCommunicator*, const NcclCall*> own;
  for (const Made& made : calls) {
    const bool is_own = made.call.kind == NcclCall::Kind::kSend && made.call.peer == made.communicator->rank();
    if (is_own) own.emplace(made.communicator.get(), &made.call);
  }
  for (Made& made : calls) {
    const auto sent = own.find(made.communicator.get());
    if (made.call.kind != NcclCall::Kind::kReceive || sent == own.end()) continue;
    if (sent->second->PartBytes() == made.call.PartBytes()) made.call.own = sent->second->send;
  }
}

NcclResult NcclGroup::MakeAll() {
  std::vector<Made> calls = std::exchange(calls_, {});
  const std::vector<std::shared_ptr<NcclCommunicator>> awaited = std::exchange(awaited_, {});
  NcclResult result = std::exchange(failed_, NcclResult::kSuccess);
  if (result != NcclResult::kSuccess) return result;  // NCCL, too, makes none of a group with a bad call
  NoteOwn(calls);
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

// NCCL: collectives, messages, groups, and what a communicator tells of itself (communicator.h says how calls go).
//
// Not here, and refused by name: one-sided operations (ncclPutSignal, …), communicators for kernels (ncclDevComm…),
// ncclCommGrow, parameters. Results are NcclResult by their numbers.

extern "C" int cudaMalloc(void** address, std::size_t bytes);
extern "C" int cudaFree(void* address);
extern "C" int cudaStreamIsCapturing(void* stream, int* status);

namespace ashlar::hollow {
namespace {

constexpr char kFile[] = "libnccl.so.";
constexpr int kVersion = 22809;  // 2.28.9, where the program brought no NCCL of its own

int Number(NcclResult result) { return static_cast<int>(result); }
int Bad(NcclResult result = NcclResult::kInvalidArgument) { return Number(NcclGroup::OfThread().Failed(result)); }

// The operation of a call: one of NCCL's own, or one that the program made for this communicator and type.
bool SetOperation(NcclCommunicator& communicator, int op, NcclCall* call) {
  if (op >= 0 && op < kNcclOps) {
    call->op = static_cast<NcclOp>(op);
    return true;
  }
  NcclCommunicator::Operation operation;
  if (!communicator.FindOperation(op, &operation) || operation.type != call->type) return false;
  call->op = NcclOp::kSum;
  call->scalar = operation.scalar;
  call->scalar_bytes = operation.scalar_bytes;
  return true;
}

bool HasPeer(NcclCall::Kind kind) {
  return kind != NcclCall::Kind::kAllReduce && kind != NcclCall::Kind::kReduceScatter &&
         kind != NcclCall::Kind::kAllGather && kind != NcclCall::Kind::kAllToAll;
}

// A graph that is replayed does not exchange: what the call would write is unknown from now on.
bool TakenByGraph(const NcclCommunicator& communicator, const NcclCall& call, void* stream) {
  int status = 0;
  if (cudaStreamIsCapturing(stream, &status) != 0 || status == 0) return false;
  CountRefused("NCCL in a captured graph");
  CountLaunch(stream);
  for (const ByteRange& range : call.Writes({communicator.rank(), communicator.ranks()})) {
    SettleRange(range.address, range.bytes);
    Forget(range.address, range.bytes);
  }
  return true;
}

int Make(const void* handle, NcclCall call, int type, int op, void* stream) {
  const auto communicator = NcclFind(handle);
  if (communicator == nullptr || type < 0 || type >= kNcclTypes) return Bad();
  const NcclResult ready = communicator->Ready(false);
  if (ready != NcclResult::kSuccess) {  // "… before the previous operation returned ncclSuccess"
    return Bad(ready == NcclResult::kInProgress ? NcclResult::kInvalidArgument : ready);
  }
  if (communicator->is_suspended()) return Bad(NcclResult::kInvalidUsage);
  call.type = static_cast<NcclType>(type);
  if (HasPeer(call.kind) && (call.peer < 0 || call.peer >= communicator->ranks())) return Bad();
  if (call.IsReduction() && !SetOperation(*communicator, op, &call)) return Bad();
  if (call.count == 0 && !call.IsPair()) return Number(NcclResult::kSuccess);  // of nothing: NCCL drops it
  communicator->NoteUse(call);
  if (TakenByGraph(*communicator, call, stream)) return Number(NcclResult::kSuccess);
  return Number(NcclGroup::OfThread().Add(communicator, std::move(call), stream));
}

// What ncclCommRegister and ncclCommWindowRegister hand out.
struct Registered {
  void* address;
};
std::mutex g_registered_mutex;
std::map<const void*, std::unique_ptr<Registered>>& AllRegistered() {
  static auto* all = new std::map<const void*, std::unique_ptr<Registered>>;
  return *all;
}

int Register(const void* handle, void* address, std::size_t bytes, void** registered) {
  if (NcclFind(handle) == nullptr || registered == nullptr || address == nullptr || bytes == 0) return Bad();
  const std::lock_guard lock(g_registered_mutex);
  auto made = std::make_unique<Registered>(Registered{address});
  *registered = made.get();
  AllRegistered()[made.get()] = std::move(made);
  return Number(NcclResult::kSuccess);
}

int Deregister(const void* handle, const void* registered) {
  if (NcclFind(handle) == nullptr) return Bad();
  if (registered == nullptr) return Number(NcclResult::kSuccess);
  const std::lock_guard lock(g_registered_mutex);
  return AllRegistered().erase(registered) == 1 ? Number(NcclResult::kSuccess) : Bad();
}

template <typename Value>
int Tell(const void* handle, Value* value, Value (NcclCommunicator::*ask)() const) {
  const auto communicator = NcclFind(handle);
  if (communicator == nullptr || value == nullptr) return Bad();
  *value = (communicator.get()->*ask)();
  return Number(NcclResult::kSuccess);
}

}  // namespace

// --- Collectives ----------------------------------------------------------------------------------------------------

using Kind = NcclCall::Kind;

ASHLAR_SURFACE int ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int op, const void* comm,
                                 void* stream) {
  return Make(comm, {.kind = Kind::kAllReduce, .send = send, .receive = receive, .count = count}, type, op, stream);
}

ASHLAR_SURFACE int ncclReduce(const void* send, void* receive, std::size_t count, int type, int op, int root,
                              const void* comm, void* stream) {
  return Make(comm, {.kind = Kind::kReduce, .send = send, .receive = receive, .count = count, .peer = root}, type, op,
              stream);
}

ASHLAR_SURFACE int ncclReduceScatter(const void* send, void* receive, std::size_t count, int type, int op,
                                     const void* comm, void* stream) {
  return Make(comm, {.kind = Kind::kReduceScatter, .send = send, .receive = receive, .count = count}, type, op, stream);
}

ASHLAR_SURFACE int ncclBroadcast(const void* send, void* receive, std::size_t count, int type, int root,
                                 const void* comm, void* stream) {
  return Make(comm, {.kind = Kind::kBroadcast, .send = send, .receive = receive, .count = count, .peer = root}, type, 0,
              stream);
}

ASHLAR_SURFACE int ncclBcast(void* buffer, std::size_t count, int type, int root, const void* comm, void* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ASHLAR_SURFACE int ncclAllGather(const void* send, void* receive, std::size_t count, int type, const void* comm,
                                 void* stream) {
  return Make(comm, {.kind = Kind::kAllGather, .send = send, .receive = receive, .count = count}, type, 0, stream);
}

ASHLAR_SURFACE int ncclAlltoAll(const void* send, void* receive, std::size_t count, int type, const void* comm,
                                void* stream) {
  return Make(comm, {.kind = Kind::kAllToAll, .send = send, .receive = receive, .count = count}, type, 0, stream);
}

ASHLAR_SURFACE int ncclGather(const void* send, void* receive, std::size_t count, int type, int root, const void* comm,
                              void* stream) {
  return Make(comm, {.kind = Kind::kGather, .send = send, .receive = receive, .count = count, .peer = root}, type, 0,
              stream);
}

ASHLAR_SURFACE int ncclScatter(const void* send, void* receive, std::size_t count, int type, int root, const void* comm,
                               void* stream) {
  return Make(comm, {.kind = Kind::kScatter, .send = send, .receive = receive, .count = count, .peer = root}, type, 0,
              stream);
}

ASHLAR_SURFACE int ncclSend(const void* send, std::size_t count, int type, int peer, const void* comm, void* stream) {
  return Make(comm, {.kind = Kind::kSend, .send = send, .count = count, .peer = peer}, type, 0, stream);
}

ASHLAR_SURFACE int ncclRecv(void* receive, std::size_t count, int type, int peer, const void* comm, void* stream) {
  return Make(comm, {.kind = Kind::kReceive, .receive = receive, .count = count, .peer = peer}, type, 0, stream);
}

// --- Groups and operations ------------------------------------------------------------------------------------------

ASHLAR_SURFACE int ncclGroupStart() {
  NcclGroup::OfThread().Start();
  return Number(NcclResult::kSuccess);
}

ASHLAR_SURFACE int ncclGroupEnd() { return Number(NcclGroup::OfThread().End()); }

// No time is known: the estimate stays NCCL_UNDEF_FLOAT.
ASHLAR_SURFACE int ncclGroupSimulateEnd(NcclSimInfo* info) {
  if (info != nullptr && info->magic != kNcclSimMagic) NcclGroup::OfThread().Failed(NcclResult::kInvalidArgument);
  if (info != nullptr && info->magic == kNcclSimMagic) info->estimated_time = -1;
  return Number(NcclGroup::OfThread().Drop());
}

ASHLAR_SURFACE int ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int residence, const void* comm) {
  const auto communicator = NcclFind(comm);
  if (communicator == nullptr || op == nullptr || scalar == nullptr || type < 0 || type >= kNcclTypes) return Bad();
  NcclCommunicator::Operation operation{.type = static_cast<NcclType>(type)};
  if (residence == kNcclScalarDevice) {
    operation.scalar = scalar;
  } else {
    const auto* bytes = static_cast<const std::byte*>(scalar);
    operation.scalar_bytes.assign(bytes, bytes + NcclSizeOf(operation.type));
  }
  *op = communicator->AddOperation(std::move(operation));
  return Number(NcclResult::kSuccess);
}

ASHLAR_SURFACE int ncclRedOpDestroy(int op, const void* comm) {
  const auto communicator = NcclFind(comm);
  return communicator != nullptr && communicator->RemoveOperation(op) ? Number(NcclResult::kSuccess) : Bad();
}

// --- What a communicator tells --------------------------------------------------------------------------------------

ASHLAR_SURFACE int ncclCommCount(const void* comm, int* count) { return Tell(comm, count, &NcclCommunicator::ranks); }
ASHLAR_SURFACE int ncclCommUserRank(const void* comm, int* rank) { return Tell(comm, rank, &NcclCommunicator::rank); }
ASHLAR_SURFACE int ncclCommCuDevice(const void* comm, int* device) {
  return Tell(comm, device, &NcclCommunicator::device);
}

ASHLAR_SURFACE int ncclCommGetAsyncError(const void* comm, int* error) {
  const auto communicator = NcclFind(comm);
  if (communicator == nullptr || error == nullptr) return Bad();
  *error = Number(communicator->AsyncError());
  return Number(NcclResult::kSuccess);
}

ASHLAR_SURFACE const char* ncclGetLastError(const void* comm) {
  static thread_local std::string text;
  const auto communicator = NcclFind(comm);
  text = communicator == nullptr ? "" : communicator->LastError();
  return text.c_str();
}

// Source: ncclGetErrorString in src/init.cc of NCCL 2.30.
ASHLAR_SURFACE const char* ncclGetErrorString(int result) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                    "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                    "internal error - please report this issue to the NCCL developers",
                                    "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                    "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress",
                                    "wait operation timed out"};
  const bool known = result >= 0 && result < static_cast<int>(std::size(kTexts));
  return known ? kTexts[result] : "unknown result code";
}

// The version of the NCCL that the program brought.
ASHLAR_SURFACE int ncclGetVersion(int* version) {
  if (version == nullptr) return Number(NcclResult::kInvalidArgument);
  const auto real = reinterpret_cast<int (*)(int*)>(RealFunction(kFile, "pncclGetVersion"));
  if (real == nullptr || real(version) != 0) *version = kVersion;
  return Number(NcclResult::kSuccess);
}

// --- A communicator's memory ----------------------------------------------------------------------------------------

// Numbers of nccl.h from 2.29.7 on. A communicator is suspended and resumed by all of its ranks; none waits for another
// here, as there is nothing that a rank could still use.
enum NcclMemoryStat : int { kSuspendBytes = 0, kIsSuspended = 1, kPersistBytes = 2, kTotalBytes = 3 };
constexpr int kNcclSuspendMemory = 1;

ASHLAR_SURFACE int ncclCommSuspend(const void* comm, int flags) {
  const auto communicator = NcclFind(comm);
  if (communicator == nullptr || flags != kNcclSuspendMemory) return Bad();
  const NcclResult ready = communicator->Ready(false);
  return ready == NcclResult::kSuccess ? Number(communicator->Suspend()) : Bad(ready);
}

ASHLAR_SURFACE int ncclCommResume(const void* comm) {
  const auto communicator = NcclFind(comm);
  if (communicator == nullptr) return Bad();
  return Number(communicator->Resume());
}

// NCCL takes no memory here, so that all its sizes are 0.
ASHLAR_SURFACE int ncclCommMemStats(const void* comm, int stat, std::uint64_t* value) {
  const auto communicator = NcclFind(comm);
  if (communicator == nullptr || value == nullptr || stat < kSuspendBytes || stat > kTotalBytes) return Bad();
  *value = stat == kIsSuspended && communicator->is_suspended() ? 1 : 0;
  return Number(NcclResult::kSuccess);
}

// --- Memory ---------------------------------------------------------------------------------------------------------

// NCCL takes whole granules of virtual memory: 2 MiB. Source: ncclMemAlloc in src/allocator.cc.
ASHLAR_SURFACE int ncclMemAlloc(void** address, std::size_t bytes) {
  constexpr std::size_t kGranule = std::size_t{2} << 20;
  if (address == nullptr || bytes == 0 || bytes > SIZE_MAX - kGranule) return Bad();
  return cudaMalloc(address, (bytes + kGranule - 1) / kGranule * kGranule) == 0 ? Number(NcclResult::kSuccess)
                                                                                : Bad(NcclResult::kUnhandledCudaError);
}

ASHLAR_SURFACE int ncclMemFree(void* address) {
  return cudaFree(address) == 0 ? Number(NcclResult::kSuccess) : Bad(NcclResult::kUnhandledCudaError);
}

ASHLAR_SURFACE int ncclCommRegister(const void* comm, void* address, std::size_t bytes, void** handle) {
  return Register(comm, address, bytes, handle);
}
ASHLAR_SURFACE int ncclCommDeregister(const void* comm, void* handle) { return Deregister(comm, handle); }

ASHLAR_SURFACE int ncclCommWindowRegister(const void* comm, void* address, std::size_t bytes, void** window, int) {
  return Register(comm, address, bytes, window);
}
ASHLAR_SURFACE int ncclCommWindowDeregister(const void* comm, void* window) { return Deregister(comm, window); }

ASHLAR_SURFACE int ncclWinGetUserPtr(const void* comm, void* window, void** address) {
  if (NcclFind(comm) == nullptr || address == nullptr) return Bad();
  const std::lock_guard lock(g_registered_mutex);
  const auto found = AllRegistered().find(window);
  if (found == AllRegistered().end()) return Bad();
  *address = found->second->address;
  return Number(NcclResult::kSuccess);
}

}  // namespace ashlar::hollow
