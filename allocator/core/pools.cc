#include "allocator/core/pools.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::core {
namespace {

absl::Status TaggedCapture(absl::string_view name) {
  return absl::FailedPreconditionError(absl::StrCat(
      name, ": a graph is captured in a pool without a tag: what is free in a tagged one goes back to the device"));
}

std::string Name(PoolId pool) { return absl::StrCat("pool {", pool.first, ", ", pool.second, "}"); }

}  // namespace

void Pools::Configure(PoolId pool, bool use_on_oom, bool no_split) {
  policy::PoolPair& pair = ledger_.heap().Pair(pool);
  pair.use_on_oom = use_on_oom;
  pair.no_split = no_split;
  ledger_.Note(trace::fact::PoolConfigured{pool, use_on_oom, no_split});
}

bool Pools::HasCapture(PoolId pool) const {
  bool found = false;
  routes_.ForEach([&](PoolId id, RouteKind kind) { found |= id == pool && kind == RouteKind::kCapture; });
  return found;
}

bool Pools::IsTagged(PoolId pool) const {
  const policy::PoolPair* pair = std::as_const(ledger_).heap().FindPair(pool);
  return pair != nullptr && !pair->tag.empty();
}

absl::Status Pools::SetTag(PoolId pool, absl::string_view tag) {
  if (pool.IsDefault()) return absl::InvalidArgumentError("the default pool has no tag: name another pool");
  if (tag.empty()) return absl::InvalidArgumentError("a tag is a name of one letter or more");
  if (HasCapture(pool)) return TaggedCapture(Name(pool));
  policy::PoolPair& pair = ledger_.heap().Pair(pool);
  if (pair.memory != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(pool), " has memory of its own, and only the device's can have a tag: tag another pool"));
  }
  pair.tag = std::string(tag);
  pair.takes_pages = true;
  ledger_.Note(trace::fact::PoolTagged{pool, std::string(tag)});
  return absl::OkStatus();
}

absl::Status Pools::SetMemory(PoolId pool, std::shared_ptr<PoolMemory> memory) {
  if (pool.IsDefault())
    return absl::InvalidArgumentError("the default pool has the device's memory: name another pool");
  policy::PoolPair& pair = ledger_.heap().Pair(pool);
  if (pair.memory != nullptr || pair.small.segment_count + pair.large.segment_count > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(pool), " has memory already: say where it comes from before the first request"));
  }
  if (!pair.tag.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(pair), " has a tag, and what has one is of the device: take another pool"));
  }
  pair.memory = std::move(memory);
  NoteUsers(pool);
  return absl::OkStatus();
}

std::string Pools::NameOf(const policy::PoolPair& pair) {
  if (pair.small.id.IsDefault()) return "the default pool";
  return pair.tag.empty() ? Name(pair.small.id) : absl::StrCat(Name(pair.small.id), " \"", pair.tag, "\"");
}

absl::StatusOr<std::vector<PoolId>> Pools::Find(const std::vector<std::string>& tags,
                                                const std::vector<PoolId>& ids) const {
  if (tags.empty() && ids.empty()) return WithSegments();
  const policy::Heap& heap = std::as_const(ledger_).heap();
  std::set<PoolId> found;
  for (const std::string& tag : tags) {
    bool is_known = false;
    for (const auto& [id, pair] : heap.private_pairs()) {
      if (tag.empty() || pair->tag != tag) continue;
      is_known = true;
      found.insert(id);
    }
    if (is_known) continue;
    return absl::InvalidArgumentError(absl::StrCat("no pool has the tag \"", tag, "\": tag one first"));
  }
  for (const PoolId& id : ids) {
    if (heap.FindPair(id) == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no ", Name(id)));
    found.insert(id);
  }
  return std::vector<PoolId>(found.begin(), found.end());
}

std::vector<PoolId> Pools::WithSegments() const {
  const policy::Heap& heap = std::as_const(ledger_).heap();
  std::vector<PoolId> out;
  const auto add = [&](const policy::PoolPair& pair) {
    if (pair.is_asleep || pair.small.segment_count + pair.large.segment_count > 0) out.push_back(pair.small.id);
  };
  add(heap.default_pair());
  for (const auto& [id, pair] : heap.private_pairs()) add(*pair);
  return out;
}

PoolId Pools::Create() {
  PoolId pool;
  do {
    pool = {0, ++last_id_};
  } while (ledger_.heap().FindPair(pool) != nullptr);
  ledger_.heap().Pair(pool);
  NoteUsers(pool);
  return pool;
}

void Pools::AddUser(PoolId pool) {
  if (policy::PoolPair* pair = ledger_.heap().FindPair(pool); pair != nullptr) {
    ++pair->use_count;
  } else {
    ledger_.heap().Pair(pool);
  }
}

void Pools::NoteUsers(PoolId pool) { ledger_.Note(trace::fact::PoolUsers{pool, UseCount(pool)}); }

void Pools::Retain(PoolId pool) {
  AddUser(pool);
  NoteUsers(pool);
}

void Pools::Release(PoolId pool) {
  policy::PoolPair& pair = ledger_.heap().Pair(pool);
  if (pair.use_count > 0) --pair.use_count;
  if (pair.use_count == 0) pair.no_split = false;
  NoteUsers(pool);
}

std::uint64_t Pools::UseCount(PoolId pool) const {
  const policy::PoolPair* pair = std::as_const(ledger_).heap().FindPair(pool);
  return pair == nullptr ? 0 : pair->use_count;
}

absl::Status Pools::CheckUnused(PoolId pool) const {
  const std::uint64_t users = pool.IsDefault() ? 0 : UseCount(pool);
  if (users == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(Name(pool), " has ", users, " users, who may still reach what is free in it"));
}

absl::Status Pools::Begin(PoolId pool, StreamFilter&& filter, RouteKind kind) {
  if (pool.IsDefault()) return absl::InvalidArgumentError("the default pool needs no route: requests go there anyway");
  if (!filter)
    return absl::InvalidArgumentError("BeginPool: there is no filter: pass one, which may accept every stream");
  if (kind == RouteKind::kCapture && IsTagged(pool)) return TaggedCapture(Name(pool));
  if (!routes_.Open(pool, std::move(filter), kind)) {
    return absl::FailedPreconditionError(absl::StrCat(Name(pool), " has a route already: EndPool ends it"));
  }
  AddUser(pool);
  ledger_.Note(trace::fact::PoolBegun{pool, kind == RouteKind::kCapture});
  return absl::OkStatus();
}

absl::Status Pools::End(PoolId pool, StreamFilter& filter) {
  if (!routes_.Close(pool, filter)) return absl::FailedPreconditionError(absl::StrCat(Name(pool), " has no route"));
  ledger_.Note(trace::fact::PoolEnded{pool});
  return absl::OkStatus();
}

// As facts: the route ends and begins anew, and the pool has the users that it had.
absl::Status Pools::ChangeRoute(PoolId pool, RouteKind to) {
  const bool begins = to == RouteKind::kCapture;
  if (begins && IsTagged(pool)) return absl::InvalidArgumentError(TaggedCapture(Name(pool)).message());
  if (!routes_.Change(pool, to)) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(pool), begins ? " has no plain route: BeginPool opens one" : " has no route of a capture"));
  }
  ledger_.Note(trace::fact::PoolEnded{pool});
  ledger_.Note(trace::fact::PoolBegun{pool, begins});
  NoteUsers(pool);
  return absl::OkStatus();
}

std::vector<trace::AnyFact> Pools::Facts() const {
  std::vector<trace::AnyFact> out;
  routes_.ForEach([&](PoolId pool, RouteKind kind) {
    out.emplace_back(trace::fact::PoolBegun{pool, kind == RouteKind::kCapture});
  });
  for (const auto& [id, pair] : ledger_.heap().private_pairs()) {
    out.emplace_back(trace::fact::PoolUsers{id, pair->use_count});
    if (pair->use_on_oom || pair->no_split) {
      out.emplace_back(trace::fact::PoolConfigured{id, pair->use_on_oom, pair->no_split});
    }
    if (!pair->tag.empty()) out.emplace_back(trace::fact::PoolTagged{id, pair->tag});
    if (pair->is_asleep) out.emplace_back(trace::fact::PoolSlept{id});
  }
  if (ledger_.heap().default_pair().is_asleep) out.emplace_back(trace::fact::PoolSlept{});
  return out;
}

}  // namespace ashlar::core
