// Streams and events, when what they were given is done, and captures of them.
//
// Nothing runs, so that work is done when the lag model says so:
// - at once;
// - `queries`: an event is done at its n-th query, or when it or its device is synchronised, and by nothing else; a
//   stream is done at the n-th query after it was last given work, or when it is synchronised;
// - by simulated time, of which each piece of work takes `work_ns` and each call that gives or asks something 1 us. A
//   synchronise finishes what it waits for, and what that waited for.
//
// A stream under capture gives its work to a graph (graphs.h). The rules of captures are the CUDA C++ Programming
// Guide's, "Stream Capture": what is forbidden invalidates the capture.
//
//   Streams streams({.queries = 6}, 1);
//   StreamModel* stream = streams.Create(0, 0, 0);
//   streams.Submit(*stream, NodeKind::kKernel, {});
//   EventModel* event = streams.CreateEvent(0, 0);
//   streams.Record(*event, *stream);
//   streams.Query(*event);   // Error::kNotReady, five times
//
// Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_MODEL_STREAMS_H_
#define ASHLAR_HOLLOW_MODEL_STREAMS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "hollow/model/error.h"
#include "hollow/model/graphs.h"

namespace ashlar::hollow {

struct LagModel {
  std::uint64_t queries = 0;
  std::uint64_t work_ns = 0;
  bool is_none() const { return queries == 0 && work_ns == 0; }
};

// cudaStreamCaptureMode.
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

inline constexpr unsigned kEventInterprocess = 4;  // cudaEventInterprocess, a flag of events

struct StreamModel;

struct Capture {
  std::uint64_t id = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  std::uint64_t thread = 0;  // that began it
  StreamModel* origin = nullptr;
  std::unique_ptr<Graph> graph;
  bool is_given_back = false;  // the graph was the program's before: it stays one where the capture fails
  bool is_valid = true;
  std::vector<StreamModel*> streams;  // the origin and those that joined
};

struct StreamModel {
  std::uint64_t id = 0;
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  void* green = nullptr;    // the green context that it was made in
  std::uint64_t hold = 0;   // of addresses: DeviceModel::HoldForStream
  std::uint64_t given = 0;  // pieces of work so far
  std::uint64_t done = 0;   // of them, proven done
  std::uint64_t busy_until_ns = 0;
  std::uint64_t queries = 0;      // since it was last given work
  std::uint64_t host_ticket = 0;  // the last host function that was given to it
  struct Wait {
    std::uint64_t at = 0;         // after this many pieces of its own
    std::uint64_t stream_id = 0;  // it waited for this many of another
    std::uint64_t given = 0;
  };
  std::vector<Wait> waits;
  Capture* capture = nullptr;
  std::vector<GraphNode*> frontier;  // under capture: what the next work comes after
};

struct EventModel {
  int device = 0;
  unsigned flags = 0;
  bool is_recorded = false;
  std::uint64_t stream_id = 0;
  std::uint64_t given = 0;
  std::uint64_t done_at_ns = 0;
  std::uint64_t host_ticket = 0;
  std::uint64_t queries = 0;
  std::uint64_t capture_id = 0;  // not 0: recorded in this capture
  std::vector<GraphNode*> frontier;
};

class Streams {
 public:
  // Each device has a default stream.
  Streams(const LagModel& lag, int devices);

  StreamModel* Create(int device, unsigned flags, int priority);
  Error Destroy(StreamModel& stream);
  StreamModel& Default(int device) { return *defaults_[device]; }
  // nullptr where the handle is none of ours, or gone.
  StreamModel* FindStream(const void* handle);
  EventModel* FindEvent(const void* handle);
  EventModel* CreateEvent(int device, unsigned flags);
  void Destroy(EventModel& event) { events_.erase(&event); }

  // Work with an optional action. Where the stream is under capture the action becomes the node's; else it is the
  // caller's to do now, and `runs_now` is true.
  Error Submit(StreamModel& stream, NodeKind kind, const std::function<void()>& action, bool* runs_now);
  // Counts work without an action on a stream that is not under capture.
  void Count(StreamModel& stream);

  Error Record(EventModel& event, StreamModel& stream);
  Error Wait(StreamModel& stream, const EventModel& event);
  // An external event: under capture a node of the graph, which records the event (kRecordEvent) or waits for it
  // (kWaitEvent) at each launch. The event stays as it is until then.
  Error SubmitEvent(StreamModel& stream, NodeKind kind, EventModel& event);
  // `host_done`: host functions up to this ticket have run.
  Error Query(EventModel& event, std::uint64_t host_done);
  Error Query(StreamModel& stream, std::uint64_t host_done);
  // Queries of events that were answered "done" as there is no lag, of work that the host had not waited for.
  std::uint64_t found_done() const { return found_done_; }
  Error Synchronize(EventModel& event);
  Error Synchronize(StreamModel& stream);
  void SynchronizeDevice(int device);
  // What the default stream waits for: all but streams that were made not to block it.
  void SynchronizeBlocking(int device);
  std::uint64_t LastHostTicket(int device) const;
  // Of two events of one device, each recorded with its time.
  Error ElapsedMs(const EventModel& begin, const EventModel& end, float* ms);

  // `into`: a graph of the program's own, whose nodes `after` come before what is captured.
  Error BeginCapture(StreamModel& stream, CaptureMode mode, std::uint64_t thread, std::unique_ptr<Graph> into = nullptr,
                     std::vector<GraphNode*> after = {});
  // Gives the graph back, also with an error where it was the program's own.
  Error EndCapture(StreamModel& stream, std::uint64_t thread, std::unique_ptr<Graph>* graph);
  // The graph of this address that is being captured; nullptr where none is.
  Graph* FindCapturedGraph(const void* graph);
  // The one that is being captured and has the node; nullptr where none is.
  Graph* FindCapturedGraphHaving(const GraphNode* node);
  // A call that a capture forbids: an error where one under way forbids it to a thread in this mode, which is invalid
  // then.
  Error CheckUnsafeCall(CaptureMode mode, std::uint64_t thread);
  // A synchronous call on the default stream, which is an error while a blocking stream is captured.
  Error CheckLegacyCall();
  // Any thread, without the lock that guards the rest.
  bool is_capturing() const { return capture_count_.load(std::memory_order_relaxed) > 0; }
  const LagModel& lag() const { return lag_; }
  std::uint64_t now_ns() const { return now_ns_; }

 private:
  void Finish(std::uint64_t stream_id, std::uint64_t given);
  Error Invalidate(Capture& capture, Error error);
  // The host asked an event that was recorded in the capture: that breaks it, and means nothing once it has ended.
  Error AskedOfCapture(std::uint64_t id);
  void Join(StreamModel& stream, Capture& capture);
  Capture* FindCapture(std::uint64_t id);

  LagModel lag_;
  std::unordered_map<const void*, std::unique_ptr<StreamModel>> streams_;
  std::unordered_map<std::uint64_t, StreamModel*> by_id_;
  std::unordered_map<const void*, std::unique_ptr<EventModel>> events_;
  std::vector<StreamModel*> defaults_;
  std::vector<std::unique_ptr<Capture>> captures_;
  std::atomic<std::uint64_t> capture_count_ = 0;
  std::uint64_t next_id_ = 1;
  std::uint64_t now_ns_ = 0;
  std::uint64_t found_done_ = 0;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_STREAMS_H_
