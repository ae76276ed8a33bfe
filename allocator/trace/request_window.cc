#include "allocator/trace/request_window.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::trace {
namespace {

constexpr std::uint32_t kNoId = std::numeric_limits<std::uint32_t>::max();

bool HasId(OpKind kind) { return kind == OpKind::kAlloc || kind == OpKind::kFree || kind == OpKind::kRecordStream; }

// By first appearance.
void NumberAnew(RequestTrace& trace) {
  std::vector<std::uint32_t> ids(trace.id_count, kNoId);
  trace.id_count = 0;
  for (Op& op : trace.requests) {
    if (!HasId(op.kind)) continue;
    std::uint32_t& id = ids[op.id];
    if (id == kNoId) id = trace.id_count++;
    op.id = id;
  }
}

// "RMM log (2 failed requests left out, 812 older requests summed)"
std::string SourceOf(std::string source, std::uint64_t dropped) {
  const std::string older =
      absl::StrCat(FormatCount(dropped), dropped == 1 ? " older request" : " older requests", " summed");
  if (source.empty()) source = "request trace";
  if (!absl::EndsWith(source, ")")) return absl::StrCat(source, " (", older, ")");
  source.pop_back();
  return absl::StrCat(source, ", ", older, ")");
}

}  // namespace

void LiveRequests::Add(const Op& op) {
  const std::uint64_t number = added_++;
  if (op.kind == OpKind::kAlloc) {
    bytes_ += op.bytes;
    live_.insert_or_assign(op.id, Live{{number, op}});
    return;
  }
  const auto live = HasId(op.kind) ? live_.find(op.id) : live_.end();
  if (live == live_.end()) return;
  if (op.kind == OpKind::kFree) {
    bytes_ -= live->second.allocated.op.bytes;
    live_.erase(live);
    return;
  }
  std::vector<Numbered>& used = live->second.used;
  const bool is_known =
      std::any_of(used.begin(), used.end(), [&](const Numbered& of) { return of.op.stream == op.stream; });
  if (!is_known) used.push_back({number, op});
}

std::vector<Op> LiveRequests::InOrder() const {
  std::vector<Numbered> all;
  for (const auto& [id, live] : live_) {
    all.push_back(live.allocated);
    all.insert(all.end(), live.used.begin(), live.used.end());
  }
  std::sort(all.begin(), all.end(), [](const Numbered& a, const Numbered& b) { return a.number < b.number; });
  std::vector<Op> out;
  out.reserve(all.size());
  for (const Numbered& of : all) out.push_back(of.op);
  return out;
}

void RequestWindow::Reserve(std::size_t requests) {
  const std::uint64_t held = max_events_ == 0 ? requests : max_events_ + max_events_ / 4 + 2;
  requests_.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(requests, held)));
}

void RequestWindow::Drop(const Op& op) {
  before_.Add(op);
  if (before_.bytes() > peak_bytes_) {
    peak_bytes_ = before_.bytes();
    peak_request_ = dropped_;
  }
  ++dropped_;
}

void RequestWindow::DropOldest() {
  std::size_t count = 0;
  for (; events_ > max_events_; ++count) {
    events_ -= EventsOf(requests_[count]);
    Drop(requests_[count]);
  }
  requests_.erase(requests_.begin(), requests_.begin() + static_cast<std::ptrdiff_t>(count));
}

RequestTrace RequestWindow::Finish(RequestTrace about) {
  if (max_events_ != 0 && events_ > max_events_) DropOldest();
  RequestTrace out = std::move(about);
  out.requests = std::exchange(requests_, {});
  if (dropped_ == 0) return out;
  const std::vector<Op> alive = before_.InOrder();
  const std::size_t blocks = before_.count();
  const std::uint64_t dropped = dropped_;
  for (const Op& op : out.requests) Drop(op);
  out.requests.insert(out.requests.begin(), alive.begin(), alive.end());
  NumberAnew(out);
  out.source = SourceOf(std::move(out.source), dropped);
  out.notes.push_back(
      {"window",
       absl::StrCat("older requests were summed and are not held (--max-events ", max_events_, "): over all ",
                    FormatCount(dropped_), " requests requested memory was highest, ", FormatBytes(peak_bytes_),
                    ", after request ", FormatCount(peak_request_), "; what is shown begins at request ",
                    FormatCount(dropped), ", behind the allocations of the ", FormatCount(blocks),
                    blocks == 1 ? " block that was" : " blocks that were", " alive then"),
       dropped});
  *this = RequestWindow(max_events_);
  return out;
}

}  // namespace ashlar::trace
