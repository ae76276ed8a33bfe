#include "analyzer/analyses/steps/continuation.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/steps/alignment.h"

namespace ashlar::analyses {
namespace {

using trace::OpKind;

constexpr std::size_t kLeastRequests = 8;  // of a cut-off step that say where it is
constexpr std::size_t kLeastPeriod = 3;    // requests of a step; fewer are a line or two that repeat
constexpr std::size_t kSteps = 3;          // projected: the rest of this one, and whole ones until nothing changes
constexpr std::size_t kMostProjected = 1'000'000;  // requests
constexpr int kAlikeGrowths = 3;
constexpr std::uint32_t kNoId = UINT32_MAX;

struct WindowRequest {
  std::size_t position = 0;  // in the trace
  std::uint32_t token = 0;
};

class Continuer {
 public:
  explicit Continuer(const CutOffRun& run) : run_(run) {
    out_.failed = run.failed;
    out_.requests = *run.requests;
    out_.requests.requests.resize(run.failed + 1);
    CollectRequests();
  }

  Continuation Run() {
    if (absl::string_view why = Align(); !why.empty()) {
      out_.unknown = std::string(why);
      return std::move(out_);
    }
    BookRecorded();
    if (absl::string_view why = CheckFirstStep(); !why.empty()) {
      out_.unknown = std::string(why);
      return std::move(out_);
    }
    MapSizes();
    out_.is_rising = IsRising(requests_.size() - 1);
    Append();
    return std::move(out_);
  }

 private:
  const trace::Op& OpOf(std::size_t request) const { return out_.requests.requests[requests_[request].position]; }

  // Where nothing has a stack, a request is known by its size.
  void CollectRequests() {
    const std::vector<trace::Op>& ops = out_.requests.requests;
    bool has_stacks = false;
    for (std::size_t i = 0; i < ops.size() && i < run_.stacks.size(); ++i) {
      has_stacks |= ops[i].kind == OpKind::kAlloc && run_.stacks[i] != trace::kNoStack;
    }
    absl::flat_hash_map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> tokens;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind != OpKind::kAlloc) continue;
      const std::uint64_t stack = i < run_.stacks.size() ? run_.stacks[i] : trace::kNoStack;
      const auto key = std::pair(has_stacks ? stack : ops[i].bytes, Handle(ops[i].stream));
      requests_.push_back({i, tokens.try_emplace(key, static_cast<std::uint32_t>(tokens.size())).first->second});
    }
  }

  std::vector<std::uint32_t> Tokens() const {
    std::vector<std::uint32_t> out;
    for (const WindowRequest& request : requests_) out.push_back(request.token);
    return out;
  }

  // The first request at or after a position of the trace.
  std::size_t RequestAt(std::size_t position) const {
    const auto at = std::lower_bound(requests_.begin(), requests_.end(), position,
                                     [](const WindowRequest& request, std::size_t p) { return request.position < p; });
    return static_cast<std::size_t>(at - requests_.begin());
  }

  // Why there is none; empty: aligned.
  absl::string_view Align() {
    if (requests_.size() < 2 || requests_.back().position != run_.failed) return "no earlier step";
    const std::vector<std::uint32_t> tokens = Tokens();
    if (run_.step_begin.has_value() && TryAlign(tokens, RequestAt(*run_.step_begin))) return Judge();
    if (!TryAlign(tokens, tokens.size() - 1)) return "no earlier step";
    const bool is_step = requests_.size() - 1 - aligned_.at >= kLeastPeriod;
    if (!is_step || IsWithinOnePass()) return "no earlier step";
    return Judge();
  }

  bool TryAlign(const std::vector<std::uint32_t>& tokens, std::size_t before) {
    std::optional<Alignment> found = AlignEnd(tokens, before);
    if (!found.has_value()) return false;
    aligned_ = *std::move(found);
    SetStepBegin();
    const std::size_t window = std::min(step_begin_, requests_.size() - std::min(requests_.size(), kLeastRequests));
    out_.equal_share = aligned_.ShareSince(window);
    return out_.equal_share >= kLeastEqualShare;
  }

  absl::string_view Judge() const {
    for (const std::size_t failure : run_.earlier_failures) {
      if (failure >= requests_[aligned_.at].position && failure < run_.failed) {
        return "a request of the step before failed too, and the program went on another way";
      }
    }
    return "";
  }

  // A step begins where least is allocated.
  void SetStepBegin() {
    if (run_.step_begin.has_value() && RequestAt(*run_.step_begin) > aligned_.at) {
      step_begin_ = std::min(RequestAt(*run_.step_begin), requests_.size() - 1);
      return;
    }
    std::uint64_t allocated = 0, least = UINT64_MAX;  // of a hostile file's sizes the sum wraps, and no more
    std::vector<std::uint64_t> bytes(out_.requests.id_count, 0);
    std::size_t request = 0;
    step_begin_ = requests_.size() - 1;
    for (const trace::Op& op : out_.requests.requests) {
      if (op.kind == OpKind::kAlloc) {
        if (request > aligned_.at && allocated < least) least = allocated, step_begin_ = request;
        allocated += bytes[op.id] = op.bytes;
        ++request;
      } else if (op.kind == OpKind::kFree) {
        allocated -= std::exchange(bytes[op.id], 0);
      }
    }
  }

  ProgramPart PartOf(std::size_t request) const {
    const std::size_t position = requests_[request].position;
    if (run_.parts == nullptr || position >= run_.stacks.size()) return ProgramPart::kUnknown;
    return run_.parts->Of(run_.stacks[position]);
  }

  // Layers of one pass repeat as steps do, but leave their activations behind.
  bool IsWithinOnePass() const {
    for (std::size_t i = aligned_.at; i < requests_.size(); ++i) {
      if (PartOf(i) != PartOf(requests_.size() - 1)) return false;
    }
    std::vector<bool> is_freed(out_.requests.id_count, false);
    for (const trace::Op& op : out_.requests.requests) {
      if (op.kind == OpKind::kFree) is_freed[op.id] = true;
    }
    // Of the repetition before the aligned place, what is left after a whole further one.
    const std::size_t begin = aligned_.partner[aligned_.at];
    if (begin == kNoPartner) return true;
    std::uint64_t all = 0, kept = 0;
    for (std::size_t i = begin; i < aligned_.at; ++i) {
      all += OpOf(i).bytes;
      if (!is_freed[OpOf(i).id]) kept += OpOf(i).bytes;
    }
    return kept * 4 > all;
  }

  // What is live at the failure, and what stands where a block stood a step earlier.
  void BookRecorded() {
    is_live_.assign(out_.requests.id_count, false);
    next_.assign(out_.requests.id_count, kNoId);
    growths_.assign(out_.requests.id_count, 0);
    for (const trace::Op& op : out_.requests.requests) {
      if (op.kind == OpKind::kAlloc) is_live_[op.id] = true;
      if (op.kind == OpKind::kFree) is_live_[op.id] = false;
    }
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (aligned_.partner[i] != kNoPartner) next_[OpOf(aligned_.partner[i]).id] = OpOf(i).id;
    }
  }

  // The first step makes what later ones find in place: what it left behind is not asked for again. Where that is
  // more than gradients and state, it is not known what the next step does with it.
  absl::string_view CheckFirstStep() {
    if (aligned_.partner[aligned_.at] != kNoPartner) return "";
    std::uint64_t live = 0, unexplained = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const trace::Op& op = OpOf(i);
      if (!is_live_[op.id]) continue;
      live += op.bytes;
      if (i <= aligned_.at || i >= step_begin_) continue;
      next_[op.id] = op.id;
      const ProgramPart part = PartOf(i);
      if (part != ProgramPart::kOptimizer && part != ProgramPart::kBackward) unexplained += op.bytes;
    }
    return unexplained * 10 > live ? "the one step before left behind what a later step may free" : "";
  }

  void MapSizes() {
    for (std::size_t i = step_begin_; i < requests_.size(); ++i) {
      const std::size_t before = aligned_.partner[i];
      if (before != kNoPartner) sizes_.Add(requests_[i].token, OpOf(before).bytes, OpOf(i).bytes);
    }
    // Blocks older than the step before, and alive: parameters and their state.
    const std::size_t begin = aligned_.partner[step_begin_];
    for (std::size_t i = 0; i < std::min(begin, aligned_.at); ++i) {
      if (is_live_[OpOf(i).id]) sizes_.AddLasting(OpOf(i).bytes);
    }
    freed_at_.assign(out_.requests.id_count, SIZE_MAX);
    for (std::size_t i = 0; i < out_.requests.requests.size(); ++i) {
      const trace::Op& op = out_.requests.requests[i];
      if (op.kind == OpKind::kFree) freed_at_[op.id] = i;
    }
  }

  // By which a request grew, where it grew alike from each of the last steps to the next and outlives its step: a cache
  // that grows. What grows within a step follows its batch, and the next one is not known.
  std::uint64_t GrowthOf(std::size_t request) const {
    const std::size_t whole = request < step_begin_ ? request : aligned_.partner[request];
    if (whole == kNoPartner || freed_at_[OpOf(whole).id] < requests_[step_begin_].position) return 0;
    std::uint64_t growth = 0;
    for (int steps = 0; steps < kAlikeGrowths; ++steps) {
      const std::size_t before = aligned_.partner[request];
      if (before == kNoPartner || OpOf(request).bytes <= OpOf(before).bytes) return 0;
      const std::uint64_t grown = OpOf(request).bytes - OpOf(before).bytes;
      if (growth != 0 && grown != growth) return 0;
      growth = grown;
      request = before;
    }
    return growth;
  }

  // Of sizes drawn by chance one in 720 does.
  bool IsRising(std::size_t request) const {
    constexpr int kLeastRises = 5;
    if (GrowthOf(request) > 0) return false;
    for (int rises = 0; rises < kLeastRises; ++rises) {
      const std::size_t before = aligned_.partner[request];
      if (before == kNoPartner || OpOf(request).bytes <= OpOf(before).bytes) return false;
      request = before;
    }
    return true;
  }

  // Of a recorded request of the earlier step; those of the cut-off step keep their size from here on.
  std::uint64_t BytesOf(std::size_t position, const trace::Op& op) const {
    const std::size_t begin = requests_[step_begin_].position;
    if (position >= begin || !sizes_.Changes()) return op.bytes;
    const std::size_t request = RequestAt(position);
    if (KeptItsSize(request)) return op.bytes;
    return sizes_.Of(requests_[request].token, op.bytes, freed_at_[op.id] >= begin);
  }

  // Where the two steps before differed in their sizes, what was equal in both does not follow the batch.
  bool KeptItsSize(std::size_t request) const {
    const std::size_t before = aligned_.partner[request];
    return before != kNoPartner && StepsBeforeDiffer() && OpOf(before).bytes == OpOf(request).bytes;
  }

  bool StepsBeforeDiffer() const {
    if (steps_before_differ_.has_value()) return *steps_before_differ_;
    std::size_t differ = 0, all = 0;
    const std::size_t first = aligned_.partner[step_begin_];
    for (std::size_t i = first == kNoPartner ? aligned_.at : first; i < step_begin_; ++i) {
      const std::size_t before = aligned_.partner[i];
      if (before == kNoPartner) continue;
      ++all;
      differ += OpOf(before).bytes != OpOf(i).bytes ? 1 : 0;
    }
    steps_before_differ_ = differ * 10 > all;
    return *steps_before_differ_;
  }

  void Append() {
    const std::size_t period = requests_.size() - 1 - aligned_.at;
    std::vector<trace::Op>& ops = out_.requests.requests;
    std::size_t source = requests_[aligned_.at].position + 1;
    std::int64_t last_growth = 0;
    while (out_.periods.size() < kSteps && period * (out_.periods.size() + 1) < kMostProjected) {
      last_growth = 0;
      for (const std::size_t end = ops.size(); source < end; ++source) last_growth += AppendAs(source, ops[source]);
      out_.periods.push_back(ops.size());
    }
    const auto grown = static_cast<std::uint64_t>(std::max<std::int64_t>(last_growth, 0));
    out_.growth_bytes_per_step = std::min(grown, LeftBehind());
  }

  // By which the last step left more behind than it found: what outlived a whole further step, or what is allocated now
  // beyond what was at the aligned place. Seen, not projected.
  std::uint64_t LeftBehind() const {
    const std::size_t before = aligned_.partner[aligned_.at];
    std::uint64_t out = 0;
    for (std::size_t i = before; before != kNoPartner && i < aligned_.at; ++i) {
      if (freed_at_[OpOf(i + 1).id] == SIZE_MAX) out += OpOf(i + 1).bytes;
    }
    const std::size_t then = requests_[aligned_.at].position;
    std::uint64_t more = 0;
    for (std::size_t i = 0; before != kNoPartner && i + 1 < requests_.size(); ++i) {
      const std::size_t freed = freed_at_[OpOf(i).id];
      const std::uint64_t bytes = OpOf(i).bytes;
      if (freed == SIZE_MAX) more += bytes;
      if (i < aligned_.at && freed > then) more -= bytes;
    }
    return std::max(out, static_cast<std::uint64_t>(std::max<std::int64_t>(Signed(more), 0)));
  }

  // The change of what is allocated.
  std::int64_t AppendAs(std::size_t source, trace::Op op) {
    const std::uint32_t next = op.kind == OpKind::kAlloc || NamesBlock(op.kind) ? next_[op.id] : kNoId;
    if (op.kind == OpKind::kAlloc) {
      if (source <= out_.failed && next == op.id) return 0;  // the first step made it, and it is there
      const std::uint64_t growth = source <= out_.failed ? GrowthOf(RequestAt(source)) : growths_[op.id];
      op.bytes = growth > 0 ? op.bytes + growth : source <= out_.failed ? BytesOf(source, op) : op.bytes;
      next_[op.id] = out_.requests.id_count;
      op.id = out_.requests.id_count++;
      next_.push_back(kNoId);
      growths_.push_back(growth);
      is_live_.push_back(true);
      bytes_.emplace(op.id, op.bytes);
      out_.requests.requests.push_back(op);
      return static_cast<std::int64_t>(op.bytes);
    }
    if (NamesBlock(op.kind) && (next == kNoId || !is_live_[next])) return 0;
    if (NamesBlock(op.kind)) op.id = next;
    if (op.kind == OpKind::kFree) is_live_[op.id] = false;
    out_.requests.requests.push_back(op);
    return op.kind == OpKind::kFree ? -static_cast<std::int64_t>(SizeOfId(op.id)) : 0;
  }

  static bool NamesBlock(OpKind kind) { return kind == OpKind::kFree || kind == OpKind::kRecordStream; }

  std::uint64_t SizeOfId(std::uint32_t id) {
    if (bytes_.empty() || !has_recorded_bytes_) {
      for (std::size_t i = 0; i < requests_.size(); ++i) bytes_[OpOf(i).id] = OpOf(i).bytes;
      has_recorded_bytes_ = true;
    }
    const auto at = bytes_.find(id);
    return at == bytes_.end() ? 0 : at->second;
  }

  const CutOffRun& run_;
  std::vector<WindowRequest> requests_;  // allocations, up to the one that failed
  Alignment aligned_;
  std::size_t step_begin_ = 0;          // of the cut-off step, in requests_
  std::vector<bool> is_live_;           // of each id
  std::vector<std::uint32_t> next_;     // of each id: the block in its place a step later
  std::vector<std::uint64_t> growths_;  // of each projected id: by which it is more than a step earlier
  std::vector<std::size_t> freed_at_;   // of each recorded id: where, else SIZE_MAX
  absl::flat_hash_map<std::uint32_t, std::uint64_t> bytes_;
  bool has_recorded_bytes_ = false;
  mutable std::optional<bool> steps_before_differ_;
  SizeMap sizes_;
  Continuation out_;
};

}  // namespace

Continuation Continue(const CutOffRun& run) { return Continuer(run).Run(); }

}  // namespace ashlar::analyses
