// The text: a line of magic and version, one that says what the plan was made of, then for each lane a line "lane" with
// the bytes of its planned segment and of its peak, whose requests follow it, and which of the two sizes they have,
//
//   lane 104857600 103809024 stream large
//
// and a line for each request, "size offset offset ...", which follows the one before it or the one that a line "at"
// names. A line "last" says that the request above it may be the last of a step though others follow it. The last line
// has the checksum of all lines before it.

#include "allocator/policy/placement_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/fingerprint.h"
#include "allocator/policy/options.h"
#include "allocator/policy/size_rule.h"

namespace ashlar::policy {
namespace {

constexpr absl::string_view kMagic = "ashlar-plan";
constexpr absl::string_view kVersion = "2";
constexpr std::uint64_t kMostLanes = 1024;
constexpr std::uint64_t kMostRequests = 4'000'000;  // of all lanes
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;
constexpr std::size_t kMostFileBytes = std::size_t{1} << 28;
constexpr std::array<absl::string_view, 3> kUses = {"default", "stream", "pool"};  // as LaneUse
constexpr absl::string_view kLarge = "large";
constexpr absl::string_view kSmall = "small";

// Whole blocks.
bool IsSize(std::uint64_t bytes) { return bytes % kMinBlockBytes == 0 && bytes <= kMostBytes; }

class PlanReader {
 public:
  explicit PlanReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<PlacementPlan> Run() {
    if (absl::Status status = ReadHead(); !status.ok()) return status;
    absl::string_view line;
    while (Take(line)) {
      if (absl::StartsWith(line, "end ")) {
        if (line.substr(4) != PlanChecksum(text_.substr(0, line_begin_))) {
          return Wrong("the checksum does not fit: the file was changed or damaged");
        }
        return begin_ == text_.size() ? absl::StatusOr<PlacementPlan>(std::move(plan_))
                                      : Wrong("nothing may follow the end");
      }
      if (absl::Status status = ReadLine(line); !status.ok()) return status;
    }
    return Wrong("the file is cut short: its last line is missing");
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_number_, ": ", what));
  }

  // The next line, if a whole one is left.
  bool Take(absl::string_view& line) {
    const std::size_t end = text_.find('\n', begin_);
    line_begin_ = begin_;
    ++line_number_;
    if (end == absl::string_view::npos) return false;
    line = text_.substr(begin_, end - begin_);
    begin_ = end + 1;
    return true;
  }

  absl::Status ReadHead() {
    absl::string_view line;
    const std::string expected = absl::StrCat(kMagic, " ", kVersion);
    if (!Take(line) || line != expected) {
      const bool is_plan = absl::StartsWith(line, kMagic);
      return Wrong(is_plan ? "a plan of another version" : "no plan: its first line is not \"ashlar-plan 2\"");
    }
    if (!Take(line) || !absl::StartsWith(line, "of ")) return Wrong("\"of\" and what the plan was made of are missing");
    plan_.made_of = std::string(line.substr(3));
    return absl::OkStatus();
  }

  absl::Status ReadLine(absl::string_view line) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words[0] == "lane") return ReadLane(words);
    if (plan_.lanes.empty()) return Wrong("a request before the first lane");
    std::vector<PlannedRequest>& requests = plan_.lanes.back().requests;
    if (words[0] == "at") {
      std::uint64_t number = 0;
      if (words.size() != 2 || !absl::SimpleAtoi(words[1], &number) || number >= requests.size()) {
        return Wrong("\"at\" wants the number of a request above");
      }
      at_ = static_cast<std::uint32_t>(number);
      return absl::OkStatus();
    }
    if (line == "last") {
      requests[at_].may_be_last = true;
      return absl::OkStatus();
    }
    if (++request_count_ > kMostRequests) return Wrong("more requests than a plan may have");
    PlannedRequest request;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::uint64_t bytes = 0;
      if (!absl::SimpleAtoi(words[i], &bytes) || !IsSize(bytes)) return Wrong("a size or offset is no multiple of 512");
      if (i == 0) {
        request.size_bytes = bytes;
      } else {
        request.offsets.push_back(bytes);
      }
    }
    if (request.size_bytes == 0 || IsSmall(request.size_bytes) != plan_.lanes.back().is_small) {
      return Wrong("a request of the other size than its lane's");
    }
    for (const std::uint64_t offset : request.offsets) {
      if (offset + request.size_bytes > plan_.lanes.back().segment_bytes)
        return Wrong("a request ends behind the segment");
    }
    requests[at_].next.push_back(static_cast<std::uint32_t>(requests.size()));
    at_ = static_cast<std::uint32_t>(requests.size());
    requests.push_back(std::move(request));
    return absl::OkStatus();
  }

  absl::Status ReadLane(const std::vector<absl::string_view>& words) {
    LanePlan lane;
    if (words.size() != 5 || !absl::SimpleAtoi(words[1], &lane.segment_bytes) ||
        !absl::SimpleAtoi(words[2], &lane.peak_bytes) || !IsSize(lane.segment_bytes) || lane.segment_bytes == 0) {
      return Wrong("\"lane\" wants the bytes of its segment and of its peak, whose it is, and large or small");
    }
    const auto use = std::find(kUses.begin(), kUses.end(), words[3]);
    lane.is_small = words[4] == kSmall;
    if (use == kUses.end() || (!lane.is_small && words[4] != kLarge)) {
      return Wrong("a lane is of default, stream or pool, and large or small");
    }
    lane.use = static_cast<LaneUse>(use - kUses.begin());
    if (plan_.lanes.size() == kMostLanes) return Wrong("more lanes than a plan may have");
    plan_.lanes.push_back(std::move(lane));
    at_ = LanePlan::kStart;
    return absl::OkStatus();
  }

  absl::string_view text_;
  std::size_t begin_ = 0;
  std::size_t line_begin_ = 0;
  std::size_t line_number_ = 0;
  std::uint32_t at_ = LanePlan::kStart;
  std::uint64_t request_count_ = 0;
  PlacementPlan plan_;
};

// Requests are numbered as they stand in the text: a walk down the tree, first child first.
class PlanWriter {
 public:
  explicit PlanWriter(const LanePlan& lane) : lane_(lane), numbers_(lane.requests.size()) {
    numbers_[LanePlan::kStep] = LanePlan::kStep;
  }

  void Write(std::string& out) {
    absl::StrAppend(&out, "lane ", lane_.segment_bytes, " ", lane_.peak_bytes, " ",
                    kUses[static_cast<std::size_t>(lane_.use)], " ", lane_.is_small ? kSmall : kLarge, "\n");
    for (const std::uint32_t root : {LanePlan::kStart, LanePlan::kStep}) WriteBelow(root, out);
  }

 private:
  void WriteBelow(std::uint32_t root, std::string& out) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> todo;  // parent, child
    const auto push = [&](std::uint32_t parent) {
      const std::vector<std::uint32_t>& next = lane_.requests[parent].next;
      for (auto child = next.rbegin(); child != next.rend(); ++child) todo.emplace_back(parent, *child);
    };
    push(root);
    while (!todo.empty()) {
      const auto [parent, child] = todo.back();
      todo.pop_back();
      if (numbers_[parent] != last_) absl::StrAppend(&out, "at ", numbers_[parent], "\n");
      const PlannedRequest& request = lane_.requests[child];
      absl::StrAppend(&out, request.size_bytes);
      for (const std::uint64_t offset : request.offsets) absl::StrAppend(&out, " ", offset);
      absl::StrAppend(&out, request.may_be_last && !request.next.empty() ? "\nlast\n" : "\n");
      numbers_[child] = last_ = count_++;
      push(child);
    }
  }

  const LanePlan& lane_;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t count_ = LanePlan::kStep + 1;
  std::uint32_t last_ = LanePlan::kStart;
};

}  // namespace

std::string PlanChecksum(absl::string_view text) {
  Fingerprint sum;
  for (const char c : text) sum.Add(static_cast<unsigned char>(c));
  return absl::StrCat(absl::Hex(sum.value(), absl::kZeroPad16));
}

std::string PlanText(const PlacementPlan& plan) {
  std::string out = absl::StrCat(kMagic, " ", kVersion, "\nof ", plan.made_of, "\n");
  for (const LanePlan& lane : plan.lanes) PlanWriter(lane).Write(out);
  absl::StrAppend(&out, "end ", PlanChecksum(out), "\n");
  return out;
}

absl::StatusOr<PlacementPlan> ParsePlan(absl::string_view text) { return PlanReader(text).Run(); }

absl::StatusOr<PlacementPlan> ReadPlan(const std::string& path) {
  constexpr absl::string_view kMend = "; make it with: ashlar plan TRACE -o FILE";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no file, but a pipe, a device or a folder", kMend));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::InvalidArgumentError(absl::StrCat("'", path, "' cannot be read", kMend));
  std::string text;
  std::string piece(std::size_t{1} << 16, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    text.append(piece, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMostFileBytes)
      return absl::InvalidArgumentError(absl::StrCat("'", path, "' is too long for a plan", kMend));
  }
  absl::StatusOr<PlacementPlan> plan = ParsePlan(text);
  if (plan.ok()) return plan;
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' ", plan.status().message(), kMend));
}

namespace {

constexpr std::uint32_t kMostAhead = 32;      // planned requests that may be left out at once
constexpr std::uint32_t kMostStrangers = 64;  // in a row, before the next step begins anew
constexpr std::size_t kMostLooked = 256;      // planned requests that one search looks at

struct Seen {
  std::uint32_t number;
  std::uint32_t level;  // 1: what comes next
};

}  // namespace

// What may come next and after, nearest first. Each stranger since stands for a planned request: of this very size the
// one at that level, else the nearest; else at that level the next larger one up to twice the size.
std::uint32_t PlanCursor::Find(std::uint64_t rounded_bytes) const {
  std::array<Seen, kMostLooked> seen;
  std::size_t count = 0;
  const auto remember = [&](std::uint32_t from, std::uint32_t level) {
    const auto add = [&](const PlannedRequest& request) {
      for (const std::uint32_t next : request.next) {
        if (count < seen.size()) seen[count++] = {next, level};
      }
    };
    const PlannedRequest& request = plan_->requests[from];
    add(request);
    const bool may_end = request.may_be_last || request.next.empty();
    if (may_end && from != LanePlan::kStep) add(plan_->requests[LanePlan::kStep]);
  };
  const std::uint32_t expected_level = strangers_ + 1;
  std::uint32_t same = kNone, larger = kNone;
  remember(at_, 1);
  for (std::size_t i = 0; i < count && seen[i].level <= strangers_ + kMostAhead; ++i) {
    const auto [number, level] = seen[i];
    const std::uint64_t size_bytes = plan_->requests[number].size_bytes;
    if (size_bytes == rounded_bytes) {
      if (level == expected_level) return number;
      if (same == kNone) same = number;
    } else if (level == expected_level && size_bytes > rounded_bytes && size_bytes / 2 <= rounded_bytes) {
      if (larger == kNone || size_bytes < plan_->requests[larger].size_bytes) larger = number;
    }
    remember(number, level + 1);
  }
  return same != kNone ? same : larger;
}

std::uint32_t PlanCursor::NextNumber(std::uint64_t rounded_bytes) {
  std::uint32_t found = Find(rounded_bytes);
  if (found == kNone && ++strangers_ > kMostStrangers) {
    at_ = LanePlan::kStep;
    strangers_ = 0;
    found = Find(rounded_bytes);
  }
  if (found == kNone) return kNone;
  strangers_ = 0;
  at_ = found;
  return found;
}

}  // namespace ashlar::policy
