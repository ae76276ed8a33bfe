#include "allocator/core/pools.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::core {
namespace {

std::string Name(PoolId pool) { return absl::StrCat("pool {", pool.first, ", ", pool.second, "}"); }

}  // namespace

void Pools::Configure(PoolId pool, bool use_on_oom, bool no_split) {
  policy::PoolPair& pair = ledger_.heap().Pair(pool);
  pair.use_on_oom = use_on_oom;
  pair.no_split = no_split;
  ledger_.Note(trace::fact::PoolConfigured{pool, use_on_oom, no_split});
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
  }
  return out;
}

}  // namespace ashlar::core
