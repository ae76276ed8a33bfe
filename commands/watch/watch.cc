#include "commands/watch/watch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/codec.h"
#include "allocator/trace/state_after.h"
#include "analyzer/formats/native/native_log.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

// Reads on where the last read ended. Both ends of the file may move: it is someone else's.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path)
      : path_(std::move(path)), file_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_ < 0) status_ = absl::ErrnoToStatus(errno, path_);
    struct stat about {};
    if (file_ >= 0 && fstat(file_, &about) == 0 && !S_ISREG(about.st_mode)) {
      status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": this is no file that can be read while it grows"));
    }
  }
  ~GrowingFile() {
    if (file_ >= 0) close(file_);
  }
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  const std::string& path() const { return path_; }
  const absl::Status& status() const { return status_; }
  // What is read and not taken yet. Asked once more, there is more of it, up to a limit: false where nothing came.
  bool Read() {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + kReadBytes);
    const ssize_t count = pread(file_, bytes_.data() + before, kReadBytes, static_cast<off_t>(at_));
    bytes_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    at_ += bytes_.size() - before;
    most_read_ = std::max(most_read_, at_);
    return bytes_.size() > before;
  }
  absl::string_view bytes() const { return bytes_; }
  void Drop(std::size_t count) { bytes_.erase(0, count); }
  void Rewind() {
    bytes_.clear();
    at_ = 0;
  }
  // DataLoss: of what was read some is not there any more.
  absl::Status CheckIsWhole() const {
    struct stat about {};
    const bool is_whole = fstat(file_, &about) != 0 || static_cast<std::uint64_t>(about.st_size) >= most_read_;
    if (is_whole) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(path_, ": the file was cut to ", about.st_size, " bytes, after ", most_read_, " were read"));
  }
  // Why nothing more will come; empty where something may.
  std::string WhyStopped() const {
    struct stat ours {};
    struct stat named {};
    if (fstat(file_, &ours) != 0 || stat(path_.c_str(), &named) != 0) return errno == ENOENT ? "the file is gone" : "";
    if (ours.st_dev != named.st_dev || ours.st_ino != named.st_ino) return "another file has its name now";
    return HasWriter() ? "" : "nobody writes it any more";
  }

 private:
  // A recorder holds one kind of lock and a native program's log the other. Nothing is known where there are no locks.
  bool HasWriter() const {
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (fcntl(file_, F_OFD_GETLK, &whole) != 0 || whole.l_type != F_UNLCK) return true;
    if (flock(file_, LOCK_SH | LOCK_NB) != 0) return true;
    flock(file_, LOCK_UN);
    return false;
  }

  const std::string path_;
  const int file_;
  absl::Status status_;
  std::uint64_t at_ = 0;
  std::uint64_t most_read_ = 0;
  std::string bytes_;
};

void PutState(const std::vector<trace::SnapshotSegment>& segments, WatchAnswer& answer) {
  answer.accounting = core::Account(segments);
  for (const trace::SnapshotSegment& segment : segments) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kFree) {
        answer.largest_free_bytes = std::max(answer.largest_free_bytes, block.size_bytes);
      }
    }
  }
}

// The whole of a file that is read at once: a native log, a ring.
WatchAnswer WholeAnswer(const trace::Snapshot& snapshot) {
  WatchAnswer answer;
  WatchTally tally;
  for (const trace::EventList& events : snapshot.device_traces) {
    for (const trace::Event& event : events) tally.Add(event);
  }
  tally.PutInto(answer);
  PutState(snapshot.segments, answer);
  return answer;
}

class WatchedRecording final : public WatchedFile {
 public:
  explicit WatchedRecording(std::unique_ptr<GrowingFile> file) : file_(std::move(file)) {}

  // Whether more may come is asked before the bytes are read: what it ended with is among them.
  absl::StatusOr<WatchAnswer> Look() override {
    const std::string stopped = file_->WhyStopped();
    if (absl::Status status = file_->CheckIsWhole(); !status.ok()) return status;
    do {
      const absl::StatusOr<std::size_t> taken = follower_.Take(file_->bytes());
      if (!taken.ok())
        return absl::Status(taken.status().code(), absl::StrCat(file_->path(), ": ", taken.status().message()));
      file_->Drop(*taken);
      if (absl::Status status = GoOn(); !status.ok()) return status;
    } while (file_->Read());
    if (follower_.has_ended() && !follower_.begins_with_state()) return RingAnswer();
    WatchAnswer answer;
    tally_.PutInto(answer);
    PutState(state_, answer);
    if (!follower_.has_ended()) answer.stopped = stopped;
    return Named(std::move(answer));
  }

 private:
  WatchAnswer Named(WatchAnswer answer) const {
    answer.source = file_->path();
    answer.total_bytes = follower_.device_total_bytes();
    answer.has_ended = follower_.has_ended();
    return answer;
  }

  absl::Status GoOn() {
    if (!has_state_ && follower_.begins_with_state()) {
      state_ = follower_.start();
      tally_ = WatchTally(state_);
      has_state_ = true;
    }
    const std::vector<trace::EventList> events = follower_.TakeEvents();
    if (!has_state_ || events.empty()) return absl::OkStatus();
    for (const trace::EventList& of_device : events) {
      for (const trace::Event& event : of_device) tally_.Add(event);
    }
    std::vector<trace::SnapshotSegment> after;
    absl::Status status = trace::StateAfter(state_, events, after);
    if (!status.ok()) return absl::DataLossError(absl::StrCat(file_->path(), ": ", status.message()));
    state_ = std::move(after);
    return absl::OkStatus();
  }

  absl::StatusOr<WatchAnswer> RingAnswer() {
    file_->Rewind();
    while (file_->Read()) {
    }
    const absl::StatusOr<trace::Snapshot> whole = trace::Decode(file_->bytes());
    if (!whole.ok()) return whole.status();
    return Named(WholeAnswer(*whole));
  }

  const std::unique_ptr<GrowingFile> file_;
  trace::RecordingFollower follower_;
  bool has_state_ = false;
  std::vector<trace::SnapshotSegment> state_;
  WatchTally tally_;
};

// Its rows refer to each other from the first on: it is read anew when it has grown.
class WatchedLog final : public WatchedFile {
 public:
  explicit WatchedLog(std::unique_ptr<GrowingFile> file) : file_(std::move(file)) {}

  absl::StatusOr<WatchAnswer> Look() override {
    const std::string stopped = file_->WhyStopped();
    if (absl::Status status = file_->CheckIsWhole(); !status.ok()) return status;
    file_->Rewind();
    while (file_->Read()) {
    }
    const absl::StatusOr<trace::Snapshot> log = formats::ReadNativeLog(file_->bytes());
    if (!log.ok()) return absl::Status(log.status().code(), absl::StrCat(file_->path(), ": ", log.status().message()));
    WatchAnswer answer = WholeAnswer(*log);
    answer.source = file_->path();
    answer.stopped = stopped;
    return answer;
  }

 private:
  const std::unique_ptr<GrowingFile> file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WatchedFile>> WatchedFile::Open(const std::string& path) {
  auto file = std::make_unique<GrowingFile>(path);
  if (!file->status().ok()) return file->status();
  file->Read();
  if (trace::IsRecording(file->bytes())) return std::make_unique<WatchedRecording>(std::move(file));
  if (formats::IsNativeLog(file->bytes())) return std::make_unique<WatchedLog>(std::move(file));
  return absl::InvalidArgumentError(
      absl::StrCat(path,
                   ": this is no recording of ours and no native log, which grow as a program runs; a snapshot of "
                   "PyTorch's is written once: ashlar explain reads it"));
}

namespace {

constexpr std::int64_t kMicrosecondsOfSecond = 1'000'000;

// A call of a program on device memory itself has no block beyond what it asks for.
std::uint64_t SizeOf(const trace::Event& event) {
  return event.block_size_bytes != 0 ? event.block_size_bytes : event.size_bytes;
}

bool IsDeviceCall(trace::Action action) {
  return action >= trace::Action::kSegmentAlloc && action <= trace::Action::kSegmentUnmap;
}

WatchSecond Still(std::int64_t second, std::uint64_t allocated_bytes) {
  WatchSecond still;
  still.second = second;
  still.most_allocated_bytes = still.last_allocated_bytes = allocated_bytes;
  return still;
}

}  // namespace

WatchTally::WatchTally(const std::vector<trace::SnapshotSegment>& start) {
  for (const trace::SnapshotSegment& segment : start) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive) allocated_bytes_ += block.size_bytes;
    }
  }
  peak_bytes_ = allocated_bytes_;
}

// A second begins with what is allocated as it begins.
WatchSecond& WatchTally::SecondOf(const trace::Event& event) {
  if (event.time_us == trace::kNoTime) return timeless_;
  last_us_ = std::max(last_us_.value_or(event.time_us), event.time_us);
  if (!begin_us_.has_value()) begin_us_ = event.time_us;
  const std::int64_t second = *last_us_ / kMicrosecondsOfSecond;
  if (seconds_.empty() || seconds_.back().second != second) {
    WatchSecond& added = seconds_.emplace_back();
    added.second = second;
    added.most_allocated_bytes = added.last_allocated_bytes = allocated_bytes_;
  }
  // One older than the minute says what was allocated as it began.
  while (seconds_.size() > 1 && seconds_[1].second <= second - kMinuteSeconds) seconds_.pop_front();
  return seconds_.back();
}

void WatchTally::Add(const trace::Event& event) {
  ++events_;
  WatchSecond& second = SecondOf(event);
  if (event.action == trace::Action::kAlloc) {
    ++second.allocations;
    allocated_bytes_ += SizeOf(event);
  } else if (event.action == trace::Action::kFreeRequested) {
    ++second.frees;
    allocated_bytes_ -= std::min(allocated_bytes_, SizeOf(event));
  } else if (IsDeviceCall(event.action)) {
    ++second.device_calls;
  } else if (event.action == trace::Action::kOom) {
    ++ooms_;
  }
  second.most_allocated_bytes = std::max(second.most_allocated_bytes, allocated_bytes_);
  second.last_allocated_bytes = allocated_bytes_;
  peak_bytes_ = std::max(peak_bytes_, allocated_bytes_);
}

// Over the seconds of the recording, where it is shorter.
WatchRates WatchTally::Rates() const {
  const double passed = static_cast<double>(*last_us_ - *begin_us_) / kMicrosecondsOfSecond;
  const std::int64_t last = *last_us_ / kMicrosecondsOfSecond;
  const double part = static_cast<double>(*last_us_ % kMicrosecondsOfSecond) / kMicrosecondsOfSecond;
  const double seconds = std::clamp(passed, 0.001, static_cast<double>(kRateSeconds - 1) + part);
  WatchRates rates;
  for (const WatchSecond& second : seconds_) {
    if (second.second <= last - kRateSeconds) continue;
    rates.allocations += static_cast<double>(second.allocations) / seconds;
    rates.frees += static_cast<double>(second.frees) / seconds;
    rates.device_calls += static_cast<double>(second.device_calls) / seconds;
  }
  return rates;
}

void WatchTally::PutInto(WatchAnswer& answer) const {
  answer.events = events_;
  answer.ooms = ooms_;
  answer.peak_allocated_bytes = peak_bytes_;
  answer.begin_us = begin_us_;
  answer.last_us = last_us_;
  if (!last_us_.has_value()) return;
  answer.rates = Rates();
  // A second without events is as the one before it ended.
  const std::int64_t last = *last_us_ / kMicrosecondsOfSecond;
  std::int64_t at = std::max(last - kMinuteSeconds + 1, *begin_us_ / kMicrosecondsOfSecond);
  std::uint64_t bytes = seconds_.front().last_allocated_bytes;
  for (const WatchSecond& second : seconds_) {
    for (; at < second.second; ++at) answer.minute.push_back(Still(at, bytes));
    if (at == second.second) {
      answer.minute.push_back(second);
      ++at;
    }
    bytes = second.last_allocated_bytes;
  }
}

// Which file a process records into: what it has open says so.

namespace {

bool IsRecordedFile(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  std::ifstream in(path, std::ios::binary);
  std::array<char, 64> bytes{};
  in.read(bytes.data(), bytes.size());
  const absl::string_view begin(bytes.data(), static_cast<std::size_t>(in.gcount()));
  return trace::IsRecording(begin) || formats::IsNativeLog(begin);
}

std::string MappedFile(const std::string& folder) {
  std::ifstream maps(folder + "/maps");
  std::string last;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at != std::string::npos && line.compare(at, std::string::npos, last) != 0 && IsRecordedFile(line.substr(at))) {
      last = line.substr(at);
    }
  }
  return last;
}

}  // namespace

absl::StatusOr<std::string> RecordedFileOf(std::int64_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  std::string found;
  std::int64_t number_of_found = -1;
  std::filesystem::directory_iterator descriptors(folder + "/fd", error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("process ", pid, ": its open files cannot be seen (", error.message(), "): give the file's name"));
  }
  for (const auto& entry : descriptors) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
    const std::int64_t number = std::stoll(entry.path().filename().string());
    if (error || number < number_of_found || !IsRecordedFile(target.string())) continue;
    found = target.string();
    number_of_found = number;
  }
  if (found.empty()) found = MappedFile(folder);
  if (!found.empty()) return found;
  return absl::NotFoundError(
      absl::StrCat("process ", pid,
                   " records into no file: give it a Recorder (ashlar guide recorder), or start it under ashlar "
                   "record; the history of a PyTorch program is written as it ends"));
}

}  // namespace ashlar::answers
