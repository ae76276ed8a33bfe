// A recorder writes down an allocator's decisions and its device's answers, into a file or a bounded ring. It is cheap
// enough to leave on.
//
//   absl::StatusOr<std::unique_ptr<Recorder>> file = Recorder::ToFile(&allocator, "run.ashlar");
//   absl::StatusOr<std::unique_ptr<Recorder>> ring = Recorder::Ring(&allocator, {.ring_bytes = 64 * kMiB});
//   ...
//   absl::Status status = (*ring)->Write("last.ashlar");   // ring: the last events, any number of times
//   absl::Status status = (*file)->Finish();               // file: its end; the destructor does it too
//
// `ashlar explain`, `replay`, `check`, `diff` and `convert` read the files (docs/library/recorder.md). What is recorded
// replays to the same decisions. A file holds the state it began in, a ring the state it ends in; both give every event
// in between.
//
// Threads record at once, each thread cache in a journal of its own (journal.h), unless stack_of is set. A process that
// is killed loses what was being filled: a chunk, and half of one for each thread that allocates; nothing before. When
// the file cannot be written any more, memory runs out, or stack_of throws, the recording ends as it does there, and
// status() says why; the allocator goes on. Nobody else writes the file meanwhile, and one that is there already is
// refused (output_file.h). In a child that fork makes, a file's recorder has ended; a ring goes on.
//
// Threads: everything may be called by any thread. While a recorder with stack_of is there all threads of the allocator
// share one lock (docs/library/threads.md), as with any other sink that is put in front of it (NvtxPools). The
// allocator outlives the recorder, and has no other sink meanwhile: one that is put in front of it ends with it.
#ifndef ASHLAR_ALLOCATOR_CORE_RECORDER_H_
#define ASHLAR_ALLOCATOR_CORE_RECORDER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/core/journal.h"
#include "allocator/core/output_file.h"
#include "allocator/core/thread_slot.h"
#include "allocator/trace/encoder.h"
#include "allocator/trace/sink.h"
#include "allocator/trace/stack_table.h"

namespace ashlar::core {

// The call stack of a decision, interned in `stacks`; asked on the thread that caused it, under the allocator's lock,
// which all threads share then: it must not use the allocator or open a scope, and be quick. What it throws ends the
// recording.
using StackOf = std::function<trace::StackId(const trace::Event& event, trace::StackTable& stacks)>;

struct RecorderSettings {
  std::uint64_t ring_bytes = 64 * kMiB;  // of a ring: events up to here; stacks and names are kept besides
  std::size_t chunk_bytes = 64 * kKiB;  // how much is kept from the file; each thread that allocates has half of it too
  int device = 0;                       // the number that the recording calls it by
  StackOf stack_of = {};                // nothing: the open scopes of the thread (scope.h)
  bool overwrites = false;              // whether a file that is there already may be emptied
};

class Recorder final : public trace::EventSink, private ScopeListener, private JournalKeeper {
 public:
  // `path` may have %p for the number of the process and %h for the host. Errors name the file. FailedPrecondition: the
  // allocator has a recorder or another sink already, or another recorder is writing the file, in this process or
  // another; AlreadyExists: the file is there and not empty, and the options do not say that it may be overwritten.
  static absl::StatusOr<std::unique_ptr<Recorder>> ToFile(CachingAllocator* allocator, const std::string& path,
                                                          RecorderSettings options = {});
  static absl::StatusOr<std::unique_ptr<Recorder>> Ring(CachingAllocator* allocator, RecorderSettings options = {});
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Of a ring: what it holds, as a whole recording. Waits for nothing but the disk: the allocator stands still only
  // while its segments are copied. The file has its old content or the new one, never a part. FailedPrecondition for a
  // recorder that has a file, and for a file that one is writing.
  absl::Status Write(const std::string& path);
  // The same bytes.
  absl::StatusOr<std::string> Bytes();
  // Of a file: everything so far is in it afterwards.
  absl::Status Flush();
  // Records no more; a file gets its end. The first error of all.
  absl::Status Finish();

  // Why the recording ended early: the first error of the file, or what was thrown while an event was recorded.
  absl::Status status() const;
  std::uint64_t event_count() const;  // recorded so far, those that a ring has dropped included
  std::string path() const;           // of the file, %p and %h replaced; empty for a ring

  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override;
  void OnFact(const trace::AnyFact& fact) override;
  std::string PlaceOf(std::uint64_t address) const override;
  void NameBlocks(trace::Snapshot& state) const override;
  std::optional<absl::Status> WriteKept(const std::string& path) override;
  bool OnFork() override;

 private:
  // What the events of a chunk do not say themselves.
  struct Standing {
    std::optional<std::uint64_t> limit_bytes;
    std::vector<trace::AnyFact> pools;
    std::optional<trace::fact::SettingsChanged> settings;  // that are not those of the head
    trace::RecordedStart start;
  };
  struct Chunk {
    std::shared_ptr<const std::string> payload;
    std::uint64_t event_count = 0;
    std::shared_ptr<const Standing> before;  // of a ring's events: what stood when the chunk began
  };
  struct RingContent;

  Recorder(CachingAllocator* allocator, RecorderSettings options);

  absl::Status Attach();
  absl::Status Open(const std::string& path);
  void Begin();
  void PutStart();
  void PutEnd();
  std::shared_ptr<const Standing> StandingNow() const;
  void OnScope(bool is_begin, absl::string_view name) override;
  Journal* JournalOf(std::size_t cache) override;
  void OnStill() override;
  // What the journals hold joins the chunk that ends.
  void Collect();
  void SetKeeping(bool keeps);
  void EndKeeping();
  std::int64_t LatestTime() const;
  // What thread caches recorded so far comes before what is encoded next.
  void TakeTurn();
  void Take(trace::codec::ChunkKind kind, absl::string_view payload);
  RingContent Content();
  absl::StatusOr<RingContent> ContentWhileStill();
  static std::vector<absl::string_view> PartsOf(const RingContent& content, std::deque<std::string>& headers);
  static absl::Status WriteContent(const RingContent& content, const std::string& path);
  // Records in the middle of the allocator's decision: what is thrown ends the recording, not the decision.
  template <typename Record>
  void RecordOrEnd(Record record);
  absl::Status StatusNow() const;
  void AddEvent(const trace::Event& event, std::uint64_t block_size_bytes);
  void ReadClock();
  trace::StackId StackNow(const trace::Event& event);
  trace::StackId ScopeStack();
  void NameSegments(std::vector<trace::SnapshotSegment>& segments) const;

  CachingAllocator* const allocator_;
  const Inspection inspection_;  // of the allocator
  const RecorderSettings options_;
  JournalsShare share_;

  // All below: only while the allocator stands still, or in a call from it.
  bool is_attached_ = false;  // the allocator's sink
  bool is_recording_ = false;
  bool has_new_settings_ = false;  // since the head
  absl::Status thrown_;            // what ended the recording, if something was thrown
  int events_to_clock_ = 0;
  std::int64_t time_us_ = 0;
  trace::StackTable stacks_;
  std::vector<std::unique_ptr<Journal>> journals_;  // by thread cache; nullptr: none so far
  std::uint64_t turn_ = 0;                          // that was encoded last
  std::unique_ptr<ChunkFile> file_;                 // nullptr: a ring
  // A ring's. What is handed over goes to `*target_`, definitions always to definitions_.
  std::vector<Chunk> definitions_;
  std::vector<Chunk> head_;
  std::deque<Chunk> ring_;
  std::vector<Chunk>* target_ = &head_;       // nullptr: ring_
  std::shared_ptr<const Standing> standing_;  // when the chunk that is being filled began
  std::uint64_t ring_bytes_ = 0;
  std::uint64_t ring_events_ = 0;
  std::uint64_t handed_over_events_ = 0;
  trace::codec::Encoder encoder_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_RECORDER_H_
