#include "hollow/api/nccl/absent_peers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "hollow/api/cuda/memory.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {
namespace {

using AbsentKind = NcclCall::Kind;

constexpr char kRanksVariable[] = "ASHLAR_RANKS";
constexpr std::uint64_t kMostKept = std::uint64_t{64} << 20;  // of what one rank says on one communicator

// What nobody has said is not known. What is small reads as zeros, and not as what lay there before: lengths of objects
// are then 0.
void LeaveUnsaid(const NcclCall& call, const NcclCall::RankSlot& slot) {
  for (const ByteRange& range : call.Writes(slot)) {
    if (call.IsSmall(slot.ranks)) std::memset(PointerTo(range.address), 0, range.bytes);
    Forget(range.address, range.bytes);
  }
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::unique_ptr<AbsentPeers> AbsentPeers::Of(const Meeting::Place& place) {
  const char* ranks = std::getenv(kRanksVariable);
  if (ranks == nullptr || *ranks == '\0' || place.ranks < 2) return nullptr;
  const std::string folder = std::string(ranks) + "/" + place.name;
  mkdir(folder.c_str(), 0700);  // where it cannot be made nothing is kept, and nothing heard
  return std::unique_ptr<AbsentPeers>(new AbsentPeers(folder, {place.rank, place.ranks}));
}

std::string AbsentPeers::FileOf(const NcclCall& call) {
  const std::lock_guard lock(mutex_);
  const auto pair = [this](int from, int to, std::uint64_t number) {
    return folder_ + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
  };
  if (call.kind == AbsentKind::kSend) return pair(slot_.rank, call.peer, sent_[call.peer]++);
  if (call.kind == AbsentKind::kReceive) return pair(call.peer, slot_.rank, received_[call.peer]++);
  const std::uint64_t number = collectives_++;
  const bool has_speaker = call.kind == AbsentKind::kBroadcast || call.kind == AbsentKind::kScatter;
  return has_speaker ? folder_ + "/all-" + std::to_string(number) : "";
}

bool AbsentPeers::SaysAlone(const NcclCall& call) const {
  if (call.kind == AbsentKind::kBroadcast || call.kind == AbsentKind::kScatter) return call.peer == slot_.rank;
  return call.kind == AbsentKind::kSend;
}

void AbsentPeers::Keep(const std::string& file, const std::vector<std::byte>& bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes.empty() || kept_bytes_ + bytes.size() > kMostKept) return;
    kept_bytes_ += bytes.size();
  }
  const std::string part = file + ".part-" + std::to_string(getpid());
  std::ofstream(part, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::rename(part.c_str(), file.c_str());
}

// What this rank sends to itself in the same group; empty: nothing, or it is not known.
std::string AbsentPeers::OwnMessage(const NcclCall& call) const {
  if (call.own == nullptr) return "";
  NcclCall sent = call;
  sent.kind = AbsentKind::kSend;
  sent.send = call.own;
  const std::vector<std::byte> bytes = sent.Take(slot_);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void AbsentPeers::Hear(const NcclCall& call, const std::string& file) const {
  std::string said = ReadWhole(file);
  if (said.empty()) said = OwnMessage(call);
  const std::uint64_t expected = call.PartBytes() * (call.kind == AbsentKind::kScatter ? slot_.ranks : 1);
  if (said.empty() || said.size() != expected) {
    if (call.kind != AbsentKind::kBroadcast || call.send != call.receive) LeaveUnsaid(call, slot_);
    return;
  }
  const Heard heard{.note = {}, .data = said.data(), .bytes = said.size()};
  call.Give(slot_, std::vector<Heard>(call.kind == AbsentKind::kReceive ? 1 : slot_.ranks, heard));
}

void AbsentPeers::Make(const NcclCall& call) {
  const std::vector<std::byte> mine = call.Take(slot_);
  const std::string file = FileOf(call);
  if (!file.empty() && !SaysAlone(call)) return Hear(call, file);
  if (!file.empty()) Keep(file, mine);
  if (call.kind == AbsentKind::kSend) return;
  const Heard own{.note = {}, .data = mine.empty() ? nullptr : mine.data(), .bytes = mine.size()};
  call.Give(slot_, std::vector<Heard>(slot_.ranks, own));
}

}  // namespace ashlar::hollow
