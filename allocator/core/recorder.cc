#include "allocator/core/recorder.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/core/output_file.h"
#include "allocator/trace/codec_settings.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {
namespace {

using trace::codec::ChunkKind;
using trace::codec::StateAt;

constexpr std::size_t kMostNames = 6;  // of a stack, in one line

std::uint64_t NextSerial() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

absl::Status RecordingThrew(const char* what) {
  return absl::AbortedError(absl::StrCat("the recording ended: while an event was recorded, stack_of or the recorder ",
                                         "itself threw ", what));
}

bool IsSegmentEvent(trace::Action action) {
  return action >= trace::Action::kSegmentAlloc && action <= trace::Action::kOom;
}

// A chunk is kept in memory, and it may grow (trace/encoder.cc); each thread that allocates has half of one.
constexpr std::size_t kMostChunkBytes = 256 * kMiB;

absl::Status CheckOptions(const RecorderSettings& options) {
  if (options.chunk_bytes <= kMostChunkBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("chunk_bytes: ", options.chunk_bytes, " is too large: use at most ",
                                                 kMostChunkBytes, ", since a chunk is kept in memory"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::ToFile(CachingAllocator* allocator, const std::string& path,
                                                           RecorderSettings options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  std::unique_ptr<Recorder> recorder(new Recorder(allocator, std::move(options)));
  if (const absl::Status status = recorder->Attach(); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  }
  if (absl::Status status = recorder->Open(OutputPath(path)); !status.ok()) return status;
  return recorder;
}

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Ring(CachingAllocator* allocator, RecorderSettings options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  std::unique_ptr<Recorder> recorder(new Recorder(allocator, std::move(options)));
  if (absl::Status status = recorder->Attach(); !status.ok()) return status;
  recorder->Begin();
  return recorder;
}

Recorder::Recorder(CachingAllocator* allocator, RecorderSettings options)
    : allocator_(allocator),
      inspection_(*allocator),
      options_(std::move(options)),
      share_(NextSerial()),
      encoder_(
          options_.chunk_bytes, [this](ChunkKind kind, absl::string_view payload) { Take(kind, payload); },
          [this] { Collect(); }) {}

// What the allocator decides between this and Begin is part of the state then.
absl::Status Recorder::Attach() {
  is_attached_ = allocator_->AddSink(this, options_.stack_of ? nullptr : this);
  if (is_attached_) return absl::OkStatus();
  return absl::FailedPreconditionError("the allocator has a recorder or another sink already: finish that one first");
}

absl::Status Recorder::Open(const std::string& path) {
  auto file = std::make_unique<ChunkFile>(path, options_.overwrites);
  if (!file->status().ok()) return file->status();
  file_ = std::move(file);
  Begin();
  absl::Status begun = status();
  if (!begun.ok()) file_->Discard();
  return begun;
}

void Recorder::Begin() {
  inspection_.WhileStill([this] {
    trace::codec::PutHead(inspection_.HeadNow(options_.device), encoder_);
    encoder_.SetDevice(options_.device);
    if (file_ != nullptr) PutStart();
    encoder_.Seal();
    target_ = nullptr;
    standing_ = StandingNow();
    time_us_ = share_.clock.begin_us();
    ReadClock();
    is_recording_ = true;
    SetKeeping(true);
  });
  AddScopeListener(this);
}

void Recorder::PutStart() {
  trace::RecordedStart start = inspection_.StartNow();
  for (trace::SnapshotSegment& segment : start.segments) segment.device = options_.device;
  trace::codec::PutStart(start, encoder_);
  for (const trace::AnyFact& fact : inspection_.PoolsNow()) encoder_.AddFact(fact);
}

void Recorder::PutEnd() {
  std::vector<trace::SnapshotSegment> segments = inspection_.SegmentsNow();
  for (trace::SnapshotSegment& segment : segments) segment.device = options_.device;
  NameSegments(segments);
  encoder_.AddReservations(inspection_.ReservationsNow());
  trace::codec::PutSegments(StateAt::kEnd, segments, encoder_);
}

std::shared_ptr<const Recorder::Standing> Recorder::StandingNow() const {
  if (file_ != nullptr) return nullptr;
  Standing standing{inspection_.LimitNow(), inspection_.PoolsNow(), std::nullopt, {}};
  const policy::Options& options = allocator_->options();
  if (has_new_settings_) standing.settings = {options.conf};
  if (options.free_order == policy::FreeOrder::kPerSegmentCounter || inspection_.HasAgesNow()) {
    // For the order of the segments and the ages; what else is in them, the events lead back to.
    standing.start = inspection_.StartNow();
    standing.start.has_segments = false;
    for (trace::SnapshotSegment& segment : standing.start.segments) {
      segment.device = options_.device;
      const bool has_age = segment.blocks.size() == 1 && trace::FreeAgeOf(segment.blocks.front()).has_value();
      if (!has_age) segment.blocks.clear();
    }
  } else {
    standing.start.reservations = inspection_.ReservationsNow();
    standing.start.large_pages = inspection_.LargePagesNow();
  }
  return std::make_shared<const Standing>(std::move(standing));
}

Recorder::~Recorder() { Finish().IgnoreError(); }

absl::Status Recorder::Finish() {
  RemoveScopeListener(this);
  absl::Status status;
  inspection_.WhileStill([&] {
    const bool was_recording = is_recording_;
    status = thrown_;
    if (was_recording) encoder_.Seal();
    EndKeeping();
    if (file_ == nullptr) return;
    if (was_recording) {
      PutEnd();
      encoder_.End(encoder_.event_count());
    }
    status.Update(file_->Close());
  });
  if (std::exchange(is_attached_, false)) allocator_->SetSink(nullptr);
  return status;
}

bool Recorder::OnFork() {
  if (is_recording_ && file_ == nullptr) return true;
  EndKeeping();
  is_attached_ = false;
  if (file_ != nullptr) file_->Abandon();
  return false;
}

absl::Status Recorder::Flush() {
  absl::Status status;
  inspection_.WhileStill([&] {
    if (file_ == nullptr) return;
    if (is_recording_) encoder_.Seal();
    status = StatusNow();
  });
  return status;
}

absl::Status Recorder::status() const {
  absl::Status status;
  inspection_.WhileStill([&] { status = StatusNow(); });
  return status;
}

absl::Status Recorder::StatusNow() const {
  if (!thrown_.ok()) return thrown_;
  return file_ == nullptr ? absl::OkStatus() : file_->status();
}

std::uint64_t Recorder::event_count() const {
  std::uint64_t count = 0;
  inspection_.WhileStill([&] {
    count = encoder_.event_count();
    if (!is_recording_) return;
    for (const auto& journal : journals_) count += journal != nullptr ? journal->event_count() : 0;
  });
  return count;
}

std::string Recorder::path() const { return file_ == nullptr ? "" : file_->path(); }

void Recorder::ReadClock() {
  time_us_ = std::max(time_us_, share_.clock.NowMicroseconds());
  if (time_us_ >= share_.next_time_us.load(std::memory_order_relaxed)) {
    share_.is_due.store(true, std::memory_order_relaxed);
  }
  events_to_clock_ = kEventsOfOneTime;
}

template <typename Record>
void Recorder::RecordOrEnd(Record record) {
  if (!is_recording_) return;
  try {
    return record();
  } catch (const std::exception& error) {
    thrown_ = RecordingThrew(error.what());
  } catch (...) {
    thrown_ = RecordingThrew("what is no std::exception");
  }
  EndKeeping();
}

void Recorder::OnStill() {
  if (share_.is_due.load(std::memory_order_relaxed)) RecordOrEnd([&] { encoder_.Seal(); });
}

void Recorder::OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) {
  RecordOrEnd([&] { AddEvent(event, block_size_bytes); });
}

void Recorder::AddEvent(const trace::Event& event, std::uint64_t block_size_bytes) {
  if (event.action == trace::Action::kFreeRequested && share_.is_due.load(std::memory_order_relaxed)) {
    encoder_.Seal();  // no request is under way
  }
  TakeTurn();
  if (--events_to_clock_ < 0 || IsSegmentEvent(event.action)) ReadClock();
  const trace::StackId stack = StackNow(event);
  if (stack != trace::kNoStack) share_.places.Use();
  if (event.action == trace::Action::kAlloc && share_.places.IsUsed()) share_.places.Keep(event.address, stack);
  encoder_.Add(event, block_size_bytes, time_us_, stack);
}

void Recorder::NameSegments(std::vector<trace::SnapshotSegment>& segments) const {
  for (trace::SnapshotSegment& segment : segments) {
    for (trace::SnapshotBlock& block : segment.blocks) {
      if (block.state != trace::BlockState::kFree) block.stack = share_.places.StackAt(block.address);
    }
  }
}

void Recorder::NameBlocks(trace::Snapshot& state) const {
  if (!is_recording_) return;
  NameSegments(state.segments);
  state.stacks = stacks_;
}

std::string Recorder::PlaceOf(std::uint64_t address) const {
  const trace::StackId stack = share_.places.StackAt(address);
  if (stack == trace::kNoStack) return "";
  std::vector<absl::string_view> names;
  for (const trace::FrameId frame : stacks_.stack(stack)) {
    if (names.size() == kMostNames) break;
    names.push_back(stacks_.frame(frame).function);
  }
  return absl::StrJoin(names, " < ");
}

void Recorder::OnFact(const trace::AnyFact& fact) {
  RecordOrEnd([&] {
    TakeTurn();
    has_new_settings_ |= trace::IsAny<trace::fact::SettingsChanged>(fact);
    encoder_.AddFact(fact);
  });
}

// A mark has a time of its own, later than every event before it: that is how it is placed among them.
void Recorder::OnScope(bool is_begin, absl::string_view name) {
  inspection_.WhileStill([&] {
    RecordOrEnd([&] {
      TakeTurn();
      time_us_ = LatestTime() + 1;
      ReadClock();
      encoder_.AddMark(is_begin ? "START" : "END", name, time_us_);
    });
  });
}

trace::StackId Recorder::StackNow(const trace::Event& event) {
  trace::StackId stack = trace::kNoStack;
  if (!options_.stack_of) [[likely]]
    return StackOfScopes(share_.recorder, stack) ? stack : ScopeStack();
  stack = options_.stack_of(event, stacks_);
  encoder_.DefineStacks(stacks_);
  return stack;
}

trace::StackId Recorder::ScopeStack() {
  trace::StackId stack = trace::kNoStack;
  const std::vector<std::string>& scopes = SlotOfThread()->scopes;
  if (!scopes.empty()) {
    std::vector<trace::FrameId> frames;
    for (auto name = scopes.rbegin(); name != scopes.rend(); ++name) {
      frames.push_back(stacks_.InternFrame(trace::kScopeFile, 0, *name));
    }
    stack = stacks_.InternStack(frames);
    encoder_.DefineStacks(stacks_);
  }
  SlotOfThread()->scope_stacks.PlaceOf(share_.recorder) = {share_.recorder, stack};
  return stack;
}

void Recorder::Take(ChunkKind kind, absl::string_view payload) {
  if (file_ != nullptr) return file_->Write(payload);
  Chunk chunk{std::make_shared<const std::string>(payload), 0, nullptr};
  if (kind == ChunkKind::kDefinitions) return definitions_.push_back(std::move(chunk));
  if (target_ != nullptr) return target_->push_back(std::move(chunk));
  chunk.event_count = encoder_.event_count() - std::exchange(handed_over_events_, encoder_.event_count());
  chunk.before = std::exchange(standing_, StandingNow());
  ring_bytes_ += payload.size();
  ring_events_ += chunk.event_count;
  ring_.push_back(std::move(chunk));
  while (ring_bytes_ > options_.ring_bytes && ring_.size() > 1) {
    ring_bytes_ -= ring_.front().payload->size();
    ring_events_ -= ring_.front().event_count;
    ring_.pop_front();
  }
}

// The part of a recorder that hands out journals, and collects what they hold.

namespace {

constexpr std::size_t kLeastJournalBytes = 512;
constexpr std::int64_t kMostWaitUs = 1'000'000;  // of an event for the file, while others come

}  // namespace

Journal* Recorder::JournalOf(std::size_t cache) {
  while (journals_.size() <= cache) journals_.emplace_back();
  std::unique_ptr<Journal>& journal = journals_[cache];
  if (journal == nullptr) {
    journal = std::make_unique<Journal>(share_, std::max(options_.chunk_bytes / 2, kLeastJournalBytes));
    journal->SetKeeps(is_recording_);
  }
  return journal.get();
}

// Times go on from the latest: so they never go back from one chunk to the next.
void Recorder::Collect() {
  share_.is_due.store(false, std::memory_order_relaxed);
  time_us_ = std::max(LatestTime(), share_.clock.NowMicroseconds());
  if (file_ != nullptr) share_.next_time_us.store(time_us_ + kMostWaitUs, std::memory_order_relaxed);
  for (std::size_t i = 0; i < journals_.size(); ++i) {
    if (journals_[i] == nullptr) continue;
    Journal& journal = *journals_[i];
    if (is_recording_ && journal.event_count() > 0) encoder_.AddPart(i + 1, journal.records(), journal.event_count());
    journal.Clear(time_us_);
  }
}

std::int64_t Recorder::LatestTime() const {
  std::int64_t latest = time_us_;
  for (const auto& journal : journals_) {
    if (journal != nullptr) latest = std::max(latest, journal->time_us());
  }
  return latest;
}

void Recorder::TakeTurn() {
  const std::uint64_t turn = inspection_.TurnNow();
  if (turn == turn_) return;
  turn_ = turn;
  encoder_.PutTurn(turn);
}

void Recorder::SetKeeping(bool keeps) {
  for (const auto& journal : journals_) {
    if (journal != nullptr) journal->SetKeeps(keeps);
  }
}

void Recorder::EndKeeping() {
  is_recording_ = false;
  SetKeeping(false);
}

// The part of a recorder that gives what a ring holds as a whole recording.

struct Recorder::RingContent {
  std::vector<Chunk> definitions;
  std::vector<Chunk> head;
  std::vector<Chunk> state;
  std::vector<Chunk> events;
  std::vector<Chunk> end;
};

// The state stands before the events that led to it: a file that was cut off then still has it. Definitions come first
// of all, in the order in which they were made: that is how they are numbered.
Recorder::RingContent Recorder::Content() {
  RingContent out;
  encoder_.Seal();
  target_ = &out.state;
  encoder_.AddSetting(trace::codec::SettingOf::kRecording, "events_before",
                      absl::StrCat(encoder_.event_count() - ring_events_));
  const std::shared_ptr<const Standing>& standing = ring_.empty() ? standing_ : ring_.front().before;
  trace::codec::PutStart(standing->start, encoder_);
  PutEnd();
  encoder_.AddFact(trace::fact::LimitSet{standing->limit_bytes});
  if (standing->settings.has_value()) encoder_.AddFact(*standing->settings);
  for (const trace::AnyFact& fact : standing->pools) encoder_.AddFact(fact);
  encoder_.Seal();
  target_ = &out.end;
  encoder_.End(ring_events_);
  target_ = nullptr;
  out.definitions = definitions_;
  out.head = head_;
  out.events.assign(ring_.begin(), ring_.end());
  return out;
}

absl::StatusOr<Recorder::RingContent> Recorder::ContentWhileStill() {
  if (file_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("this recording goes to ", file_->path(), "; flush it instead"));
  }
  RingContent content;
  absl::Status status;
  inspection_.WhileStill([&] {
    status = thrown_;
    if (status.ok()) content = Content();
  });
  if (!status.ok()) return status;
  return content;
}

absl::Status Recorder::Write(const std::string& path) {
  const absl::StatusOr<RingContent> content = ContentWhileStill();
  return content.ok() ? WriteContent(*content, OutputPath(path)) : content.status();
}

absl::StatusOr<std::string> Recorder::Bytes() {
  const absl::StatusOr<RingContent> content = ContentWhileStill();
  if (!content.ok()) return content.status();
  std::deque<std::string> headers;
  return absl::StrJoin(PartsOf(*content, headers), "");
}

std::optional<absl::Status> Recorder::WriteKept(const std::string& path) {
  if (!is_recording_ || file_ != nullptr) return std::nullopt;
  return WriteContent(Content(), path);
}

// The bytes of a file: headers, which `headers` holds, and payloads, which the content does.
std::vector<absl::string_view> Recorder::PartsOf(const RingContent& content, std::deque<std::string>& headers) {
  trace::codec::ChunkBytes bytes;
  std::vector<absl::string_view> parts = {headers.emplace_back(trace::codec::ChunkBytes::FileHeader())};
  for (const std::vector<Chunk>* chunks :
       {&content.definitions, &content.head, &content.state, &content.events, &content.end}) {
    for (const Chunk& chunk : *chunks) {
      parts.push_back(headers.emplace_back(bytes.HeaderOf(*chunk.payload)));
      parts.push_back(*chunk.payload);
    }
  }
  return parts;
}

absl::Status Recorder::WriteContent(const RingContent& content, const std::string& path) {
  std::deque<std::string> headers;
  return ReplaceFile(path, PartsOf(content, headers));
}

}  // namespace ashlar::core
