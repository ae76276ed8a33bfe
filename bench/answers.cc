#include "bench/answers.h"

#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::bench {
namespace {

// Calls `allocate(bytes, stream, slot)` and `free(slot)` in the same order each time.
template <typename Allocate, typename Free>
void RandomProgram(Allocate allocate, Free free) {
  Rng rng(7);
  std::vector<std::size_t> live;
  for (std::size_t slot = 0; slot < 15'000;) {
    if (live.size() > 600 || (!live.empty() && rng.Below(2) == 0)) {
      std::swap(live[rng.Below(live.size())], live.back());
      free(live.back());
      live.pop_back();
      continue;
    }
    const std::uint64_t bytes = rng.Below(50) == 0 ? rng.Between(8 * kMiB, 64 * kMiB) : RandomSize(rng);
    allocate(bytes, Stream{rng.Below(3)}, slot);
    live.push_back(slot++);
  }
}

// The address of every block; empty when two live ones shared a byte.
template <typename Subject>
std::vector<std::uint64_t> Addresses() {
  Subject subject;
  std::vector<std::uint64_t> out;
  std::vector<typename Subject::Handle> handles;
  std::map<std::uint64_t, std::uint64_t> live;  // end by address
  bool is_disjoint = true;
  RandomProgram(
      [&](std::uint64_t bytes, Stream stream, std::size_t) {
        handles.push_back(subject.Allocate(bytes, stream));
        const std::uint64_t address = Subject::AddressOf(handles.back());
        out.push_back(address);
        const auto [at, is_new] = live.emplace(address, address + bytes);
        is_disjoint &= is_new && (at == live.begin() || std::prev(at)->second <= address);
        is_disjoint &= std::next(at) == live.end() || at->second <= std::next(at)->first;
      },
      [&](std::size_t slot) {
        live.erase(out[slot]);
        subject.Free(handles[slot]);
      });
  return is_disjoint ? out : std::vector<std::uint64_t>();
}

std::string Verify() {
  const std::vector<std::uint64_t> expected = Addresses<SetEngine>();
  if (expected.empty()) return "the std::set engine's blocks overlap";
  if (Addresses<OursByAddress>() != expected) return "ours and the std::set engine place blocks at different addresses";
  if (Addresses<OursByBlock>() != expected) return "ours, by block, differs from the std::set engine";
  if (Addresses<OursPrivate>() != expected) return "ours in a private pool differs from the std::set engine";
  if (Addresses<OursExpandable>().empty()) return "ours with expandable segments: blocks overlap";
  if (Addresses<Tlsf>().empty()) return "the good fit's blocks overlap";
#ifdef ASHLAR_BENCH_CUB
  if (Addresses<Cub2>().empty() || Addresses<Cub8>().empty()) return "CUB's blocks overlap";
#endif
  return "";
}

}  // namespace

bool IsVerified(benchmark::State& state) {
  static const std::string problem = Verify();
  if (!problem.empty()) state.SkipWithError(absl::StrCat("wrong answer: ", problem).c_str());
  return problem.empty();
}

}  // namespace ashlar::bench
