// The allocators that are measured, behind one shape: Allocate(bytes, stream) -> Handle, Free(handle), and what their
// answers are checked by: live_bytes() is the sum of Counted(bytes) of all that is live, and AddressOf a handle.
//
//   ours              AllocateAddress, FreeAddress of ashlar::Allocator: the caller keeps an address, as callers of
//                     the rivals do
//   ours_block        Allocate, Free: the caller keeps the block, no lookup by address
//   ours_expandable   by address, expandable segments
//   ours_private      by address, in a private pool
//   set               RivalSetEngine
//   cub2, cub8        RivalCub, bins that grow by 2 (to 2 GiB) and by 8 (to 1 GiB); cub2_300: events cost 300 ns
//   tlsf              RivalTlsf: the caller keeps the record
//   malloc            of a 1024th of each size
#ifndef ASHLAR_BENCH_SUBJECTS_H_
#define ASHLAR_BENCH_SUBJECTS_H_

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "allocator/base/check.h"
#include "allocator/device/sim_device.h"
#include "ashlar/allocator.h"
#include "bench/endless_device.h"
#include "bench/rival_set_engine.h"
#include "bench/rival_tlsf.h"
#ifdef ASHLAR_BENCH_CUB
#include "bench/rival_cub.h"
#endif

namespace ashlar::bench {

inline std::int64_t CountedAsIs(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

// Ours with an endless device. A cache that serves a request makes no device call, so that what events cost is all the
// same to it: EventCalls() must stay 0.
class Ours {
 public:
  explicit Ours(Options options = {}, PoolId pool = {}) : allocator_(&device_, std::move(options)), pool_(pool) {}
  static std::int64_t Counted(std::uint64_t bytes) { return CountedAsIs(bytes); }
  std::int64_t live_bytes() const { return allocator_.stats().requested_bytes.all().current; }
  std::uint64_t EventCalls() const { return device_.calls().record_event + device_.calls().query_event; }

 protected:
  device::SimDevice device_{EndlessDevice()};
  Allocator allocator_;
  const PoolId pool_;
};

class OursByAddress : public Ours {
 public:
  using Ours::Ours;
  using Handle = std::uint64_t;
  Handle Allocate(std::uint64_t bytes, Stream stream = {}) { return *allocator_.AllocateAddress(bytes, stream, pool_); }
  void Free(Handle address) { benchmark::DoNotOptimize(allocator_.FreeAddress(address)); }
  static std::uint64_t AddressOf(Handle address) { return address; }
};

class OursByBlock : public Ours {
 public:
  using Handle = Block;
  Handle Allocate(std::uint64_t bytes, Stream stream = {}) { return *allocator_.Allocate(bytes, stream); }
  void Free(Handle block) { allocator_.Free(block); }
  static std::uint64_t AddressOf(Handle block) { return block.address(); }
};

class OursExpandable : public OursByAddress {
 public:
  OursExpandable() : OursByAddress(Expandable()) {}

 private:
  static Options Expandable() {
    Options options;
    options.expandable_segments = true;
    return options;
  }
};

class OursPrivate : public OursByAddress {
 public:
  OursPrivate() : OursByAddress({}, PoolId{0, 1}) {}
};

class SetEngine {
 public:
  using Handle = std::uint64_t;
  Handle Allocate(std::uint64_t bytes, Stream stream = {}) { return engine_.Allocate(bytes, stream); }
  void Free(Handle address) { engine_.Free(address); }
  static std::uint64_t AddressOf(Handle address) { return address; }
  static std::int64_t Counted(std::uint64_t bytes) { return CountedAsIs(bytes); }
  std::int64_t live_bytes() const { return engine_.requested_bytes(); }

 private:
  RivalSetEngine engine_;
};

#ifdef ASHLAR_BENCH_CUB
class Cub {
 public:
  using Handle = std::uint64_t;
  explicit Cub(RivalCubOptions options) : cub_(options) {}
  Handle Allocate(std::uint64_t bytes, Stream stream = {}) { return cub_.Allocate(bytes, stream); }
  void Free(Handle address) { cub_.Free(address); }
  static std::uint64_t AddressOf(Handle address) { return address; }
  std::int64_t Counted(std::uint64_t bytes) const { return static_cast<std::int64_t>(cub_.BinBytes(bytes)); }
  std::int64_t live_bytes() const { return cub_.live_bytes(); }

 private:
  RivalCub cub_;
};
struct Cub2 : Cub {
  Cub2() : Cub({2, 9, 31, 0}) {}
};
struct Cub8 : Cub {
  Cub8() : Cub({8, 3, 10, 0}) {}
};
struct Cub2Events300 : Cub {
  Cub2Events300() : Cub({2, 9, 31, 300}) {}
};
#endif

class Tlsf {
 public:
  using Handle = RivalTlsf::Block*;
  Handle Allocate(std::uint64_t bytes, Stream = {}) { return tlsf_.Allocate(bytes); }
  void Free(Handle block) { tlsf_.Free(block); }
  static std::uint64_t AddressOf(Handle block) { return block->address; }
  static std::int64_t Counted(std::uint64_t bytes) { return CountedAsIs(RivalTlsf::BlockBytes(bytes)); }
  std::int64_t live_bytes() const { return tlsf_.live_bytes(); }

 private:
  RivalTlsf tlsf_;
};

// Nothing but the sizes of what is live can be asked of malloc: CheckLive does.
class Malloc {
 public:
  using Handle = void*;
  static std::size_t Scaled(std::uint64_t bytes) { return std::max<std::size_t>(bytes / 1024, 16); }
  Handle Allocate(std::uint64_t bytes, Stream = {}) {
    void* block = std::malloc(Scaled(bytes));
    benchmark::DoNotOptimize(block);
    return block;
  }
  void Free(Handle block) { std::free(block); }
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_SUBJECTS_H_
