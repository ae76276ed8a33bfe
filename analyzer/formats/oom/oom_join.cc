// One failure may be told by several findings: this makes one message of them.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/formats/oom/oom_parser.h"

namespace ashlar::formats::oom {
namespace {

// A failed step logs its warnings right before it raises; a warning farther away tells of another moment.
constexpr std::size_t kWarningReachBytes = 32768;
constexpr std::size_t kNearBytes = 4096;           // what one failure says in a row
constexpr std::size_t kTableReachBytes = 1 << 18;  // of the tables and logs around a message
constexpr std::size_t kMostWaiting = 64;           // figures that wait for the message they belong to

bool IsWarning(const OomMessage& message) { return message.family == "pt-warning"; }

bool Overlap(const Figure& a, const Figure& b) { return a.low_bytes <= b.high_bytes && b.low_bytes <= a.high_bytes; }

bool IsWithin(const OomMessage& earlier, const OomMessage& later, std::size_t reach) {
  return later.byte_offset <= earlier.end_offset + reach;
}

bool SameDevice(const OomMessage& a, const OomMessage& b) {
  return !a.device.has_value() || !b.device.has_value() || *a.device == *b.device;
}

// The figures of `exact` within what is printed.
void Narrow(const std::optional<Figure>& exact, std::optional<Figure>& printed) {
  if (!exact || !printed || !Overlap(*exact, *printed)) return;
  printed->low_bytes = exact->low_bytes;
  printed->high_bytes = exact->high_bytes;
}

void FillOrNarrow(const std::optional<Figure>& from, std::optional<Figure>& slot) {
  if (!slot) slot = from;
  Narrow(from, slot);
}

// What `part` says of the failure that `whole` tells.
void Absorb(const OomMessage& part, OomMessage& whole) {
  if (!whole.device) whole.device = part.device;
  for (std::optional<Figure> OomMessage::*const slot :
       {&OomMessage::tried, &OomMessage::total, &OomMessage::allocated, &OomMessage::free, &OomMessage::reserved,
        &OomMessage::unallocated_reserved, &OomMessage::limit}) {
    FillOrNarrow(part.*slot, whole.*slot);
  }
  for (const NamedFigure& detail : part.details) {
    if (whole.Detail(detail.name) == nullptr) whole.details.push_back(detail);
  }
  for (const trace::Note& note : part.notes) {
    if (whole.FindNote(note.name) == nullptr) whole.notes.push_back(note);
  }
  whole.processes.insert(whole.processes.end(), part.processes.begin(), part.processes.end());
  whole.told_again_at.push_back(part.byte_offset);
  whole.end_offset = std::max(whole.end_offset, part.end_offset);
}

// Warnings.

bool MapsPages(const OomMessage& message) { return message.FindNote("maps_pages") != nullptr; }

// Whether `message` is the failure that `warning` announces: a message of PyTorch, of the same device and size.
bool Announces(const OomMessage& warning, const OomMessage& message) {
  if (message.family.substr(0, 3) != "pt-" || IsWarning(message) || !message.tried) return false;
  if (message.device && message.device != warning.device) return false;
  if (!IsWithin(warning, message, kWarningReachBytes)) return false;
  return MapsPages(warning) || Overlap(*warning.tried, *message.tried);
}

// The last of the warnings before a failure has the figures of its moment, to the byte.
void TakeFigures(const OomMessage& warning, OomMessage& message) {
  message.AddNote("announced", "warnings of the allocator before this message, each a call that the device refused");
  if (!MapsPages(warning)) Narrow(warning.tried, message.tried);
  Narrow(warning.total, message.total);
  Narrow(warning.free, message.free);
}

std::vector<FoundMessage> JoinWarnings(std::vector<FoundMessage> findings) {
  std::vector<FoundMessage> kept;
  for (FoundMessage& finding : findings) {
    std::size_t announced = kept.size();
    while (announced > 0 && IsWarning(kept[announced - 1].message) &&
           Announces(kept[announced - 1].message, finding.message)) {
      --announced;
    }
    for (std::size_t i = announced; i < kept.size(); ++i) TakeFigures(kept[i].message, finding.message);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(announced), kept.end());
    kept.push_back(std::move(finding));
  }
  return kept;
}

void SetDetail(absl::string_view name, const Figure& figure, OomMessage& message) {
  for (NamedFigure& detail : message.details) {
    if (detail.name == name) {
      detail.figure = figure;
      return;
    }
  }
  message.details.push_back({std::string(name), figure});
}

// A warning that no error follows, after another of its device: refusals that the program survived, in one message with
// their range. `halvings` counts those that asked for about half as much as the one before.
void AddRefusal(const OomMessage& warning, OomMessage& series) {
  if (series.told == 1) {
    SetDetail("largest_tried", *series.tried, series);
    SetDetail("smallest_tried", *series.tried, series);
    SetDetail("last_tried", *series.tried, series);
    if (series.free) SetDetail("most_free", *series.free, series);
  }
  series.told += warning.told;
  series.told_again_at.resize(1);
  series.told_again_at.front() = warning.byte_offset;
  series.end_offset = warning.end_offset;
  const std::uint64_t size = warning.tried->low_bytes;
  const std::uint64_t last = series.Detail("last_tried")->low_bytes;
  if (size < last) {
    series.AddNote(size * 4 >= last && size * 4 <= last * 3 ? "halved_requests" : "smaller_requests",
                   "refusals that asked for less than the one before");
  } else if (size > last) {
    series.AddNote("larger_requests", "refusals that asked for more than the one before");
  }
  SetDetail("last_tried", *warning.tried, series);
  if (size > series.Detail("largest_tried")->low_bytes) SetDetail("largest_tried", *warning.tried, series);
  if (size < series.Detail("smallest_tried")->low_bytes) SetDetail("smallest_tried", *warning.tried, series);
  const Figure* most = series.Detail("most_free");
  if (warning.free && most != nullptr && warning.free->low_bytes > most->low_bytes) {
    SetDetail("most_free", *warning.free, series);
  }
}

// Calls that the device refused and after which the program tries again: PyTorch's warnings, and TensorFlow's driver,
// which asks for a tenth less each time.
bool IsRefusal(const OomMessage& message) {
  const bool is_driver = message.family == "tf-bfc" && message.Detail("printed") != nullptr && !message.limit;
  return (IsWarning(message) || is_driver) && message.tried.has_value() && !MapsPages(message);
}

bool IsRefusalOf(const OomMessage& warning, const OomMessage& series) {
  return IsRefusal(warning) && IsRefusal(series) && warning.family == series.family &&
         warning.device == series.device && IsWithin(series, warning, kTableReachBytes);
}

// Parts of one failure that differ.

// XLA's pool refuses a size rounded up to 256 bytes, and then XLA tells the exact one.
bool IsExactOf(const OomMessage& exact, const OomMessage& pool) {
  if (exact.family != "jax-xla" || !exact.tried || !pool.tried) return false;
  if (pool.family != "tf-bfc" && pool.family != "jax-xla") return false;
  const Figure* rounded = pool.Detail("rounded_to");
  const Figure& asked = rounded != nullptr ? *rounded : *pool.tried;
  const std::uint64_t bytes = exact.tried->low_bytes;
  return bytes <= asked.high_bytes && bytes + 256 > asked.low_bytes && IsWithin(pool, exact, kTableReachBytes);
}

// TensorFlow's operation raises what its pool has refused: no more than the pool was asked for, and not much less.
bool IsOperationOf(const OomMessage& operation, const OomMessage& pool) {
  if (operation.family != "tf-bfc" || pool.family != "tf-bfc" || !operation.tried || !pool.tried) return false;
  if (!SameDevice(operation, pool) || !IsWithin(pool, operation, kTableReachBytes)) return false;
  if (!absl::StartsWith(operation.tried->printed, "shape")) return false;
  if (const Figure* known = pool.Detail("tensor"); known != nullptr) return known->printed == operation.tried->printed;
  const std::uint64_t bytes = operation.tried->low_bytes;
  return bytes <= pool.tried->high_bytes && bytes >= pool.tried->low_bytes / 10 * 9;
}

bool NotesConflict(const OomMessage& a, const OomMessage& b) {
  return std::any_of(b.notes.begin(), b.notes.end(), [&a](const trace::Note& note) {
    const trace::Note* known = a.FindNote(note.name);
    return known != nullptr && (known->message != note.message || known->count != note.count);
  });
}

// TensorRT tells each way that it tried.
bool TriesManyWays(const OomMessage& message) { return message.family == "tensorrt"; }

bool Agrees(const std::optional<Figure>& part, const std::optional<Figure>& whole) {
  return !part || !whole || Overlap(*part, *whole);
}

// A library that says several things of one failure, or the same of it twice.
bool IsPartOf(const OomMessage& part, const OomMessage& whole) {
  if (part.family != whole.family || !IsWithin(whole, part, kNearBytes)) return false;
  if (!SameDevice(part, whole) || NotesConflict(whole, part)) return false;
  return TriesManyWays(part) || (Agrees(part.tried, whole.tried) && Agrees(part.free, whole.free));
}

// vLLM says of PyTorch's failure what it was about when that came.
bool IsWrapperOf(const OomMessage& wrapper, const OomMessage& failure) {
  return wrapper.FindNote("dummy_requests") != nullptr && absl::StartsWith(failure.family, "pt-") &&
         !IsWarning(failure) && IsWithin(failure, wrapper, kWarningReachBytes);
}

// Whether `part` tells nothing that `whole` does not.
bool SaysNoMore(const OomMessage& part, const OomMessage& whole) {
  const auto is_known = [&whole](const trace::Note& note) { return whole.FindNote(note.name) != nullptr; };
  return (!part.tried || whole.tried) && (!part.free || whole.free) && (!part.device || whole.device) &&
         std::all_of(part.notes.begin(), part.notes.end(), is_known);
}

// What a table says of a device: its capacity, and what is used or free of it.
struct DeviceFigures {
  Figure total;
  Figure used;
  std::optional<Figure> free;
};

std::optional<DeviceFigures> MemoryOf(const OomMessage& table, int device) {
  const Figure* total = table.Detail(absl::StrCat("device_total.", device));
  const Figure* used = table.Detail(absl::StrCat("device_used.", device));
  const Figure* free = table.Detail(absl::StrCat("device_free.", device));
  if (total == nullptr || (used == nullptr && free == nullptr)) return std::nullopt;
  DeviceFigures out{*total, {}, {}};
  if (free != nullptr) out.free = *free;
  if (used != nullptr) {
    out.used = *used;
  } else if (total->low_bytes >= free->low_bytes) {
    const std::uint64_t bytes = total->MiddleBytes() - std::min(total->MiddleBytes(), free->MiddleBytes());
    out.used = {bytes, bytes, FormatBytes(bytes)};
  }
  return out;
}

// The one device of a table that is full to 95 %; -1 where several are, or none.
int OnlyFullDevice(const OomMessage& table) {
  int full = -1;
  for (int device = 0;; ++device) {
    const std::optional<DeviceFigures> memory = MemoryOf(table, device);
    if (!memory.has_value()) return full;
    if (memory->used.MiddleBytes() < memory->total.MiddleBytes() / 100 * 95) continue;
    if (full >= 0) return -1;
    full = device;
  }
}

// Of a table the device of the message, the only one, or the only full one. The table is of another moment than the
// message: it stands where the message says nothing.
void AddDeviceTable(const OomMessage& table, OomMessage& message) {
  const bool is_only = MemoryOf(table, 0).has_value() && !MemoryOf(table, 1).has_value();
  const int device = is_only ? 0 : message.device.value_or(OnlyFullDevice(table));
  const std::optional<DeviceFigures> memory = MemoryOf(table, device);
  if (!memory.has_value() || message.total.has_value()) return;
  if (!message.device.has_value()) message.device = device;
  message.total = memory->total;
  if (!message.free.has_value()) message.free = memory->free;
  message.details.push_back({"device_used", memory->used});
  for (const ProcessUse& process : table.processes) {
    if (process.device == device) message.processes.push_back(process);
  }
  message.AddNote("device_table", absl::StrCat("the device's memory and processes are of the ", table.family,
                                               " table beside the message"));
}

class Joiner {
 public:
  std::vector<OomMessage> Join(std::vector<FoundMessage> findings) {
    for (FoundMessage& finding : JoinWarnings(std::move(findings))) Add(std::move(finding));
    for (const OomMessage& beside : waiting_) {
      OomMessage* const last = LastFor(beside, kTableReachBytes);
      if (last != nullptr && !IsOfAnyDevice(beside, *last)) AttachTo(last, beside);
    }
    std::vector<OomMessage> out;
    for (FoundMessage& finding : kept_) out.push_back(std::move(finding.message));
    return out;
  }

 private:
  void Add(FoundMessage finding) {
    OomMessage& message = finding.message;
    if (finding.kind == FindingKind::kBeside) return AddBeside(std::move(message));
    if (finding.kind == FindingKind::kWeak) {
      if (!kept_.empty() && IsWithin(kept_.back().message, message, kNearBytes)) return;
    } else {
      while (!kept_.empty() && kept_.back().kind == FindingKind::kWeak &&
             IsWithin(kept_.back().message, message, kNearBytes)) {
        kept_.pop_back();
      }
    }
    if (JoinToLast(finding)) return;
    TakeWaiting(message);
    kept_.push_back(std::move(finding));
  }

  bool JoinToLast(const FoundMessage& finding) {
    if (kept_.empty()) return false;
    const OomMessage& message = finding.message;
    OomMessage& last = kept_.back().message;
    if (IsRefusalOf(message, last)) return AddRefusal(message, last), true;
    if (IsExactOf(message, last)) return JoinExact(message), true;
    if (IsOperationOf(message, last)) {
      SetDetail("tensor", *message.tried, last);
      last.told_again_at.push_back(message.byte_offset);
      return true;
    }
    if (IsWrapperOf(message, last)) return last.told_again_at.push_back(message.byte_offset), true;
    const bool is_of_rows = finding.is_row || message.family == "vllm" || message.family == "nccl";
    if (!is_of_rows || !IsPartOf(message, last)) return false;
    if (SaysNoMore(message, last)) ++last.told;
    if (message.tried && last.tried && !Overlap(*message.tried, *last.tried)) {
      SetDetail("also_tried", *message.tried, last);
    }
    Absorb(message, last);
    return true;
  }

  // To the pool of every device that was asked for it.
  void JoinExact(const OomMessage& exact) {
    for (auto pool = kept_.rbegin(); pool != kept_.rend() && IsExactOf(exact, pool->message); ++pool) {
      OomMessage& message = pool->message;
      if (message.family == "tf-bfc") {
        message.family = exact.family;
        message.details.push_back({"printed", *message.tried});
        message.truncated = false;
      }
      message.tried = exact.tried;
      Absorb(exact, message);
    }
  }

  static bool IsFor(const OomMessage& beside, const OomMessage& message) {
    if (IsDeviceTable(beside.family)) return message.FindNote("host_memory") == nullptr;
    const bool is_family = beside.family == "pt-" ? absl::StartsWith(message.family, "pt-")
                                                  : beside.family == message.family ||
                                                        (beside.family == "jax-xla" && message.family == "tf-bfc");
    return is_family && SameDevice(beside, message);
  }

  OomMessage* LastFor(const OomMessage& beside, std::size_t reach) {
    for (auto at = kept_.rbegin(); at != kept_.rend() && kept_.rend() - at > 0; ++at) {
      if (!IsWithin(at->message, beside, reach)) return nullptr;
      if (IsFor(beside, at->message)) return &at->message;
    }
    return nullptr;
  }

  // Right behind a message it belongs to that; a log tells the figures before the failure.
  void AddBeside(OomMessage beside) {
    const std::size_t reach = beside.family == "tf-bfc" ? kTableReachBytes : kNearBytes / 8;
    OomMessage* last = LastFor(beside, reach);
    if (last != nullptr) return AttachTo(last, beside);
    if (waiting_.size() == kMostWaiting) waiting_.erase(waiting_.begin());
    waiting_.push_back(std::move(beside));
  }

  // Whether figures wait of several devices, of which the message names none.
  bool IsOfAnyDevice(const OomMessage& beside, const OomMessage& message) const {
    return !message.device.has_value() && beside.device.has_value() &&
           std::any_of(waiting_.begin(), waiting_.end(), [&beside](const OomMessage& other) {
             return other.family == beside.family && other.device.has_value() && other.device != beside.device;
           });
  }

  // The last that was told counts.
  void TakeWaiting(OomMessage& message) {
    std::vector<OomMessage> left;
    for (auto beside = waiting_.rbegin(); beside != waiting_.rend(); ++beside) {
      if (!IsFor(*beside, message) || IsOfAnyDevice(*beside, message)) {
        left.insert(left.begin(), *beside);  // it is looked at for those that are left
      } else if (IsWithin(*beside, message, kTableReachBytes)) {
        AttachTo(&message, *beside);
      }
    }
    waiting_ = std::move(left);
  }

  static void AttachTo(OomMessage* message, const OomMessage& beside) {
    if (message == nullptr) return;
    if (IsDeviceTable(beside.family)) return AddDeviceTable(beside, *message);
    const std::size_t end = message->end_offset;
    const std::vector<std::size_t> told_again_at = message->told_again_at;
    Absorb(beside, *message);
    message->end_offset = std::max(end, beside.byte_offset > end ? beside.end_offset : end);
    message->told_again_at = told_again_at;  // figures are no telling
  }

  std::vector<FoundMessage> kept_;
  std::vector<OomMessage> waiting_;
};

}  // namespace

namespace {

// Whether what stands before the message in its line says that it is a warning.
bool IsLoggedAsWarning(absl::string_view text, const OomMessage& message) {
  constexpr std::size_t kMostLineBytes = 400;
  absl::string_view line = text.substr(0, message.byte_offset);
  line = line.substr(line.size() - std::min(line.size(), kMostLineBytes));
  const std::string words = absl::AsciiStrToLower(line.substr(line.rfind('\n') + 1));  // npos + 1: the whole
  return absl::StrContains(words, "warn") || absl::StrContains(words, "skip");
}

bool HasLineBetween(absl::string_view text, std::size_t begin, std::size_t end) {
  const std::size_t newline = begin < end ? text.substr(begin, end - begin).find('\n') : absl::string_view::npos;
  return newline != absl::string_view::npos &&
         !absl::StripAsciiWhitespace(text.substr(begin + newline, end - begin - newline)).empty();
}

// Whether the program went on after `earlier`, and `later` is one more refusal of the same: a warning again, or a
// native program that tries with less.
bool IsNextOfSeries(absl::string_view text, const OomMessage& later, const OomMessage& earlier) {
  if (later.family != earlier.family || later.device != earlier.device || !later.tried || !earlier.tried) return false;
  if (!later.traceback.empty() || !earlier.traceback.empty() || later.is_chained) return false;
  if (!IsWithin(earlier, later, kTableReachBytes) || later.FindNote("host_memory") != nullptr) return false;
  if (!HasLineBetween(text, earlier.end_offset, later.byte_offset)) return false;
  if (IsLoggedAsWarning(text, later) && IsLoggedAsWarning(text, earlier)) return true;
  if (later.FindNote("not_a_failure") != nullptr && earlier.FindNote("not_a_failure") != nullptr) return true;
  const Figure* last = earlier.Detail("last_tried");
  return later.family == "ggml" && later.tried->high_bytes < (last != nullptr ? *last : *earlier.tried).low_bytes;
}

}  // namespace

std::vector<OomMessage> JoinSeries(absl::string_view text, std::vector<OomMessage> messages) {
  std::vector<OomMessage> out;
  for (OomMessage& message : messages) {
    if (!out.empty() && IsNextOfSeries(text, message, out.back())) {
      AddRefusal(message, out.back());
    } else {
      out.push_back(std::move(message));
    }
  }
  return out;
}

std::vector<OomMessage> JoinFindings(std::vector<FoundMessage> findings) { return Joiner().Join(std::move(findings)); }

}  // namespace ashlar::formats::oom
