#include "hollow/api/nccl/communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hollow/api/nccl/absent_peers.h"
#include "hollow/api/nccl/reduce.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {
namespace {

using Kind = NcclCall::Kind;

// What the numbers of a note are. Those below kType are compared.
enum NoteAt : std::size_t { kKindAt, kSizeAt, kReducedTypeAt, kOpAt, kRootAt, kComparedEnd, kTypeAt = kComparedEnd };

std::uint64_t AddressOf(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

bool HasRoot(Kind kind) {
  return kind == Kind::kReduce || kind == Kind::kBroadcast || kind == Kind::kGather || kind == Kind::kScatter;
}

// Writes bytes that all ranks agree on, or says that they are not known.
void Put(void* to, const std::byte* bytes, std::uint64_t size) {
  if (size == 0) return;
  if (bytes == nullptr) return Forget(AddressOf(to), size);
  std::memcpy(to, bytes, size);
  Know(AddressOf(to), size);
}

}  // namespace

std::uint64_t NcclCall::PartBytes() const { return count * NcclSizeOf(type); }

std::uint64_t NcclCall::GivesBytes(const RankSlot& slot) const {
  switch (kind) {
    case Kind::kReduceScatter:
    case Kind::kAllToAll:
      return PartBytes() * slot.ranks;
    case Kind::kBroadcast:
      return slot.rank == peer ? PartBytes() : 0;
    case Kind::kScatter:
      return slot.rank == peer ? PartBytes() * slot.ranks : 0;
    case Kind::kReceive:
    case Kind::kSplit:
      return 0;
    default:
      return PartBytes();
  }
}

std::vector<ByteRange> NcclCall::Writes(const RankSlot& slot) const {
  const std::uint64_t to = AddressOf(receive);
  const bool is_root = slot.rank == peer;
  switch (kind) {
    case Kind::kReduce:
      return is_root ? std::vector<ByteRange>{{to, PartBytes()}} : std::vector<ByteRange>{};
    case Kind::kBroadcast:
      if (is_root && send == receive) return {};
      return {{to, PartBytes()}};
    case Kind::kAllGather:
    case Kind::kAllToAll:
      return {{to, PartBytes() * slot.ranks}};
    case Kind::kGather:
      return is_root ? std::vector<ByteRange>{{to, PartBytes() * slot.ranks}} : std::vector<ByteRange>{};
    case Kind::kSplit:
    case Kind::kSend:
      return {};
    default:
      return {{to, PartBytes()}};
  }
}

bool NcclCall::IsSmall(int ranks) const {
  const bool is_all = kind == Kind::kReduceScatter || kind == Kind::kAllGather || kind == Kind::kAllToAll ||
                      kind == Kind::kGather || kind == Kind::kScatter;
  // A message of more is moved by nobody, however large the setting: it goes through memory that all ranks share.
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  return PartBytes() * (is_all ? ranks : 1) <= std::min(TheSettings().real_bytes, kMost);
}

Note NcclCall::Describe() const {
  Note note{};
  note[kKindAt] = static_cast<std::uint64_t>(kind);
  // Copies are alike when they are of as many bytes; NCCL makes them bytes too.
  note[kSizeAt] = IsReduction() ? count : PartBytes();
  note[kReducedTypeAt] = IsReduction() ? static_cast<std::uint64_t>(type) : 0;
  note[kOpAt] = IsReduction() ? static_cast<std::uint64_t>(op) : 0;
  note[kRootAt] = HasRoot(kind) ? static_cast<std::uint64_t>(peer) : 0;
  note[kTypeAt] = static_cast<std::uint64_t>(type);
  return note;
}

std::vector<std::byte> NcclCall::Take(const RankSlot& slot) const {
  if (kind == Kind::kSplit) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
    return {bytes, bytes + data.size()};
  }
  const std::uint64_t size = GivesBytes(slot);
  if (size == 0 || !IsSmall(slot.ranks)) return {};
  SettleRange(AddressOf(send), size);
  if (!IsKnown(AddressOf(send), size)) return {};
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), send, size);
  const std::size_t elements = size / NcclSizeOf(type);
  if (!scalar_bytes.empty()) {
    NcclMultiply(type, bytes.data(), scalar_bytes.data(), elements);
  } else if (scalar != nullptr) {
    SettleRange(AddressOf(scalar), NcclSizeOf(type));
    if (!IsKnown(AddressOf(scalar), NcclSizeOf(type))) return {};
    NcclMultiply(type, bytes.data(), scalar, elements);
  }
  if (IsReduction() && op == NcclOp::kAvg) NcclBeforeAverage(type, bytes.data(), elements, slot.ranks);
  return bytes;
}

void NcclCall::GiveReduced(const RankSlot& slot, const std::vector<Heard>& parts) const {
  if (Writes(slot).empty()) return;
  const std::uint64_t size = PartBytes();
  const bool known = std::all_of(parts.begin(), parts.end(), [](const Heard& part) { return part.data != nullptr; });
  if (!known) return Put(receive, nullptr, size);
  const std::uint64_t offset = kind == Kind::kReduceScatter ? size * slot.rank : 0;
  const auto at = [&parts, offset](int rank) { return static_cast<const std::byte*>(parts[rank].data) + offset; };
  std::vector<std::byte> total(at(0), at(0) + size);
  for (int rank = 1; rank < slot.ranks; ++rank) NcclCombine(op, type, total.data(), at(rank), count);
  if (op == NcclOp::kAvg) NcclAfterAverage(type, total.data(), count, slot.ranks);
  Put(receive, total.data(), size);
}

void NcclCall::Give(const RankSlot& slot, const std::vector<Heard>& parts) const {
  if (IsReduction()) return GiveReduced(slot, parts);
  if (kind == Kind::kSplit || Writes(slot).empty()) return;
  const std::uint64_t size = PartBytes();
  const auto of = [&parts](int rank, std::uint64_t offset) {
    const auto* bytes = static_cast<const std::byte*>(parts[rank].data);
    return bytes == nullptr ? nullptr : bytes + offset;
  };
  if (kind == Kind::kBroadcast) return Put(receive, of(peer, 0), size);
  if (kind == Kind::kScatter) return Put(receive, of(peer, size * slot.rank), size);
  if (kind == Kind::kReceive) return Put(receive, of(0, 0), size);
  for (int rank = 0; rank < slot.ranks; ++rank) {
    Put(static_cast<std::byte*>(receive) + size * rank, of(rank, kind == Kind::kAllToAll ? size * slot.rank : 0), size);
  }
}

bool SameCall(const Note& a, const Note& b) { return std::equal(a.begin(), a.begin() + kComparedEnd, b.begin()); }

std::string TextOf(const Note& note) {
  constexpr const char* kKinds[] = {"all-reduce", "reduce",  "reduce-scatter", "broadcast", "all-gather", "all-to-all",
                                    "gather",     "scatter", "split",          "send",      "receive"};
  constexpr const char* kOps[] = {"sum", "product", "max", "min", "average"};
  const auto kind = static_cast<Kind>(note[kKindAt]);
  std::string text = kKinds[note[kKindAt]];
  if (kind == Kind::kSplit) return text;
  const auto type = static_cast<NcclType>(note[kTypeAt]);
  const bool is_reduction = kind <= Kind::kReduceScatter;
  const std::uint64_t elements = note[kSizeAt] / (is_reduction ? 1 : NcclSizeOf(type));
  text += " of " + std::to_string(elements) + " " + NcclNameOf(type);
  if (is_reduction) text += std::string(" (") + kOps[note[kOpAt]] + ")";
  if (HasRoot(kind)) text += " with root " + std::to_string(note[kRootAt]);
  return text;
}

namespace {

constexpr std::chrono::milliseconds kLook{100};  // for the dead, who bring no news

}  // namespace

void NcclWork::Poll() { communicator_->Flush(false); }
void NcclWork::Settle() { communicator_->WaitFor(*this); }

// --- Making a call --------------------------------------------------------------------------------------------------

Meeting::Sent NcclCommunicator::Publish(const NcclCall& call, const std::vector<std::byte>& bytes, NcclWork& work) {
  const Note note = call.Describe();
  if (call.kind == NcclCall::Kind::kReceive) return Meeting::Sent::kYes;
  if (call.kind == NcclCall::Kind::kSend) return meeting_->Send(call.peer, note, bytes.data(), bytes.size());
  work.number = meeting_->said();
  return meeting_->Say(note, bytes.data(), bytes.size());
}

// Without the other ranks. Who shares a color at a split is not known then.
NcclResult NcclCommunicator::IssueAlone(const NcclCall& call, void* stream) {
  if (call.kind == NcclCall::Kind::kSplit) {
    const std::lock_guard lock(mutex_);
    return Fail(NcclResult::kInvalidUsage, "ncclCommSplit asks ranks that have no process (dry-run --ranks)");
  }
  absent_->Make(call);
  CountLaunch(stream);
  return NcclResult::kSuccess;
}

NcclResult NcclCommunicator::Issue(const NcclCall& call, void* stream, std::shared_ptr<NcclWork>* made) {
  if (absent_ != nullptr) return IssueAlone(call, stream);
  const NcclCall::RankSlot slot{place_.rank, place_.ranks};
  const std::vector<std::byte> bytes = call.Take(slot);
  const std::vector<ByteRange> writes = call.Writes(slot);
  for (const ByteRange& range : writes) {
    SettleRange(range.address, range.bytes);  // what was to be written before is written before
    Forget(range.address, range.bytes);
  }
  const auto work = std::make_shared<NcclWork>(shared_from_this(), call);
  if (made != nullptr) *made = work;
  const Deadline deadline = InSeconds(MeetingTimeoutSeconds());
  std::unique_lock lock(mutex_);
  Meeting::Sent sent;
  while (error_ == NcclResult::kSuccess && (sent = Publish(call, bytes, *work)) != Meeting::Sent::kYes) {
    if (sent == Meeting::Sent::kNoMemory) {
      return Fail(NcclResult::kSystemError, "no memory is left in " +
                                                (place_.folder.empty() ? std::string("/dev/shm") : place_.folder) +
                                                " for " + std::to_string(bytes.size()) + " bytes between processes");
    }
    const bool over = Deadline::clock::now() >= deadline;
    LookForTheGone(over);
    if (over) Fail(NcclResult::kRemoteError, "the others do not take what this rank sends");
    const std::uint32_t news = meeting_->News();
    lock.unlock();
    Pause(news, std::chrono::milliseconds(1));
    lock.lock();
    Progress();
  }
  if (error_ != NcclResult::kSuccess) return error_;
  if (call.kind == NcclCall::Kind::kSend) {
    work->SetState(StreamWork::State::kDone);
  } else if (call.kind == NcclCall::Kind::kReceive) {
    receives_[call.peer].push_back(work);
  } else {
    calls_.push_back(work);
  }
  Progress();
  const bool add = work->under_way() && call.kind != NcclCall::Kind::kSplit;
  lock.unlock();
  if (call.kind != NcclCall::Kind::kSplit) CountLaunch(stream);
  // Where nothing will move, what is written is unknown already.
  if (add) AddStreamWork(options_.device, stream, work, call.IsSmall(place_.ranks) ? writes : std::vector<ByteRange>{});
  return NcclResult::kSuccess;
}

// --- Finishing calls ------------------------------------------------------------------------------------------------

void NcclCommunicator::Progress() {
  while (error_ == NcclResult::kSuccess && !calls_.empty() && FinishNext()) {
  }
  for (auto& [from, row] : receives_) {
    while (error_ == NcclResult::kSuccess && !row.empty() && FinishMessages(from)) {
    }
  }
}

// The first call, if all ranks have made it.
bool NcclCommunicator::FinishNext() {
  const std::shared_ptr<NcclWork> work = calls_.front();
  std::vector<Heard> parts;
  for (int rank = 0; rank < place_.ranks; ++rank) {
    const auto heard = meeting_->Hear(rank, work->number);
    if (!heard) return false;
    parts.push_back(*heard);
  }
  const Note& mine = parts[place_.rank].note;
  for (int rank = 0; rank < place_.ranks; ++rank) {
    if (SameCall(mine, parts[rank].note)) continue;
    Fail(NcclResult::kInvalidUsage, NameOfCall(mine, work->number) + " meets " + TextOf(parts[rank].note) +
                                        " of rank " + std::to_string(rank) + ": on GPUs this hangs or goes wrong");
    return false;
  }
  const NcclCall::RankSlot slot{place_.rank, place_.ranks};
  work->call.Give(slot, parts);
  if (work->call.kind == NcclCall::Kind::kSplit) {
    for (const Heard& part : parts) work->heard.emplace_back(static_cast<const char*>(part.data), part.bytes);
  }
  meeting_->Done(work->number);
  calls_.pop_front();
  work->SetState(StreamWork::State::kDone);
  return true;
}

bool NcclCommunicator::FinishMessages(int from) {
  const auto message = meeting_->Next(from);
  if (!message) return false;
  std::deque<std::shared_ptr<NcclWork>>& row = receives_[from];
  const std::shared_ptr<NcclWork> work = row.front();
  const Note mine = work->call.Describe();
  if (mine[1] != message->note[1]) {  // bytes
    Fail(NcclResult::kInvalidUsage, TextOf(mine) + " from rank " + std::to_string(from) + " meets " +
                                        TextOf(message->note) + ": on GPUs this hangs or goes wrong");
    return false;
  }
  work->call.Give({place_.rank, place_.ranks}, {*message});
  meeting_->Take(from);
  row.pop_front();
  work->SetState(StreamWork::State::kDone);
  return true;
}

// Fails where a rank that is waited for will never call.
void NcclCommunicator::LookForTheGone(bool deadline_over) {
  looked_ = Deadline::clock::now();
  if (!calls_.empty()) {
    const NcclWork& work = *calls_.front();
    for (int rank = 0; rank < place_.ranks; ++rank) {
      if (meeting_->SaidBy(rank) > work.number || !(meeting_->Gone(rank) || deadline_over)) continue;
      if (meeting_->SaidBy(rank) > work.number) continue;  // just before it went
      const Note mine = work.call.Describe();
      Fail(NcclResult::kRemoteError, NameOfCall(mine, work.number) + (deadline_over ? " waited too long: " : ": ") +
                                         WhoLacks(*meeting_, work.number + 1));
      return;
    }
  }
  for (const auto& [from, row] : receives_) {
    if (row.empty() || meeting_->Next(from) || !(meeting_->Gone(from) || deadline_over) || meeting_->Next(from))
      continue;
    Fail(NcclResult::kRemoteError, TextOf(row.front()->call.Describe()) + " from rank " + std::to_string(from) +
                                       (deadline_over ? " waited too long: " : ": ") + NameOf(*meeting_, from));
    return;
  }
}

void NcclCommunicator::WaitFor(const NcclWork& work) {
  const Deadline deadline = InSeconds(MeetingTimeoutSeconds());
  std::unique_lock lock(mutex_);
  while (work.under_way()) {
    const std::uint32_t news = meeting_->News();
    Progress();
    if (!work.under_way()) return;
    const Deadline now = Deadline::clock::now();
    if (now >= deadline || now - looked_ >= kLook) LookForTheGone(now >= deadline);
    if (!work.under_way()) return;
    lock.unlock();
    Pause(news, kLook);
    lock.lock();
  }
}

void NcclCommunicator::Pause(std::uint32_t news, std::chrono::milliseconds most) {
  std::shared_ptr<Meeting> meeting;
  {
    const std::lock_guard lock(mutex_);
    meeting = meeting_;
  }
  if (meeting != nullptr) meeting->WaitForNews(news, most);
}

NcclResult NcclCommunicator::Flush(bool wait) {
  std::vector<std::shared_ptr<NcclWork>> all;
  {
    const std::lock_guard lock(mutex_);
    if (error_ != NcclResult::kSuccess || state_ != State::kReady) return error_;
    Progress();
    all.assign(calls_.begin(), calls_.end());
    for (const auto& [from, row] : receives_) all.insert(all.end(), row.begin(), row.end());
  }
  if (!wait) return all.empty() ? NcclResult::kSuccess : NcclResult::kInProgress;
  for (const auto& work : all) WaitFor(*work);
  const std::lock_guard lock(mutex_);
  return error_;
}

NcclResult NcclCommunicator::AsyncError() {
  const NcclResult ready = Ready(false);
  if (ready != NcclResult::kSuccess) return ready;
  const std::lock_guard lock(mutex_);
  if (state_ != State::kReady) return error_;
  Progress();
  if (error_ == NcclResult::kSuccess && Deadline::clock::now() - looked_ >= kLook) LookForTheGone(false);
  return error_;
}

// --- The end --------------------------------------------------------------------------------------------------------

NcclResult NcclCommunicator::Fail(NcclResult result, const std::string& line) {
  if (error_ != NcclResult::kSuccess) return error_;
  error_ = result;
  last_error_ = "rank " + std::to_string(place_.rank) + " of " + std::to_string(place_.ranks) +
                (place_.name.empty() ? "" : ", communicator " + place_.name.substr(0, 8)) + ": " + line;
  std::fprintf(stderr, "ashlar: NCCL: %s\n", last_error_.c_str());
  EndAll(StreamWork::State::kFailed);
  return result;
}

void NcclCommunicator::EndAll(StreamWork::State state) {
  for (const auto& work : calls_) work->SetState(state);
  for (const auto& [from, row] : receives_) {
    for (const auto& work : row) work->SetState(state);
  }
  if (state != StreamWork::State::kAborted) return;
  calls_.clear();
  receives_.clear();
}

void NcclCommunicator::Abort() {
  const std::lock_guard lock(mutex_);
  EndAll(StreamWork::State::kAborted);
  state_ = State::kLeft;
  if (error_ == NcclResult::kSuccess) error_ = NcclResult::kInvalidUsage;  // of who calls on it yet
  planned_by_.reset();
  meeting_.reset();
  if (use_ >= 0) TheProcess().library_use.Remove(use_);
}

NcclResult NcclCommunicator::Suspend() {
  const std::lock_guard lock(mutex_);
  if (is_suspended_) return NcclResult::kInvalidUsage;  // "Already suspended"
  is_suspended_ = true;
  TheProcess().library_use.Suspend(use_);
  return NcclResult::kSuccess;
}

NcclResult NcclCommunicator::Resume() {
  const std::lock_guard lock(mutex_);
  if (!is_suspended_) return NcclResult::kInvalidUsage;  // "Not in suspended state"
  is_suspended_ = false;
  TheProcess().library_use.Resume(use_);
  return NcclResult::kSuccess;
}

bool NcclCommunicator::is_suspended() {
  const std::lock_guard lock(mutex_);
  return is_suspended_;
}

// Rings, trees and multicast serve collectives; each pair that sends, gathers or scatters has connections of its own.
void NcclCommunicator::NoteUse(const NcclCall& call) {
  LibraryUse& use = TheProcess().library_use;
  if (call.kind <= NcclCall::Kind::kAllGather) return use.NoteCollective(use_);
  const bool is_to_all = call.kind == NcclCall::Kind::kAllToAll || call.peer == place_.rank;
  for (int peer = 0; peer < place_.ranks; ++peer) {
    if (peer != place_.rank && (peer == call.peer || (is_to_all && !call.IsPair()))) use.NotePeer(use_, peer);
  }
}

void NcclCommunicator::Leave() {
  if (Ready(false) == NcclResult::kSuccess) Flush(true);
  Abort();
}

std::string NcclCommunicator::NameOfCall(const Note& note, std::uint64_t number) const {
  return TextOf(note) + ", call " + std::to_string(number);
}

std::string NcclCommunicator::LastError() {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

int NcclCommunicator::NextShrink() {
  const std::lock_guard lock(mutex_);
  return shrinks_++;
}

int NcclCommunicator::AddOperation(Operation operation) {
  const std::lock_guard lock(mutex_);
  operations_[next_operation_] = std::move(operation);
  return next_operation_++;
}

bool NcclCommunicator::RemoveOperation(int number) {
  const std::lock_guard lock(mutex_);
  return operations_.erase(number) != 0;
}

bool NcclCommunicator::FindOperation(int number, Operation* operation) {
  const std::lock_guard lock(mutex_);
  const auto found = operations_.find(number);
  if (found == operations_.end()) return false;
  *operation = found->second;
  return true;
}

}  // namespace ashlar::hollow
