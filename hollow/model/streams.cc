#include "hollow/model/streams.h"

#include <algorithm>
#include <utility>

namespace ashlar::hollow {
namespace {

constexpr std::uint64_t kCallNs = 1000;      // of simulated time, which a call that gives or asks something takes
constexpr unsigned kNonBlocking = 1;         // cudaStreamNonBlocking
constexpr unsigned kEventDisableTiming = 2;  // cudaEventDisableTiming

}  // namespace

Streams::Streams(const LagModel& lag, int devices) : lag_(lag) {
  for (int device = 0; device < devices; ++device) defaults_.push_back(Create(device, 0, 0));
}

StreamModel* Streams::Create(int device, unsigned flags, int priority) {
  auto stream = std::make_unique<StreamModel>();
  stream->id = next_id_++;
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  StreamModel* out = stream.get();
  by_id_.emplace(out->id, out);
  streams_.emplace(out, std::move(stream));
  return out;
}

Error Streams::Destroy(StreamModel& stream) {
  if (stream.capture != nullptr) return Invalidate(*stream.capture, Error::kCaptureUnsupported);
  by_id_.erase(stream.id);
  streams_.erase(&stream);
  return Error::kNone;
}

StreamModel* Streams::FindStream(const void* handle) {
  const auto it = streams_.find(handle);
  return it == streams_.end() ? nullptr : it->second.get();
}

EventModel* Streams::FindEvent(const void* handle) {
  const auto it = events_.find(handle);
  return it == events_.end() ? nullptr : it->second.get();
}

EventModel* Streams::CreateEvent(int device, unsigned flags) {
  auto event = std::make_unique<EventModel>();
  event->device = device;
  event->flags = flags;
  EventModel* out = event.get();
  events_.emplace(out, std::move(event));
  return out;
}

void Streams::Count(StreamModel& stream) {
  now_ns_ += kCallNs;
  ++stream.given;
  stream.queries = 0;
  stream.busy_until_ns = std::max(stream.busy_until_ns, now_ns_) + lag_.work_ns;
}

Error Streams::Submit(StreamModel& stream, NodeKind kind, const std::function<void()>& action, bool* runs_now) {
  *runs_now = false;
  if (stream.capture == nullptr) {
    Count(stream);
    *runs_now = true;
    return Error::kNone;
  }
  if (!stream.capture->is_valid) return Error::kCaptureInvalidated;
  stream.frontier = {stream.capture->graph->Add(kind, stream.frontier, action)};
  return Error::kNone;
}

Error Streams::Record(EventModel& event, StreamModel& stream) {
  event.is_recorded = true;
  event.queries = 0;
  event.capture_id = 0;
  event.frontier.clear();
  if (stream.capture != nullptr) {
    if (!stream.capture->is_valid) return Error::kCaptureInvalidated;
    event.capture_id = stream.capture->id;
    event.frontier = stream.frontier;
    return Error::kNone;
  }
  now_ns_ += kCallNs;
  event.stream_id = stream.id;
  event.given = ++stream.given;
  event.done_at_ns = std::max(stream.busy_until_ns, now_ns_);
  event.host_ticket = stream.host_ticket;
  return Error::kNone;
}

Error Streams::Wait(StreamModel& stream, const EventModel& event) {
  if (!event.is_recorded) return Error::kNone;
  if (event.capture_id != 0) {
    Capture* capture = FindCapture(event.capture_id);
    if (capture == nullptr) return Error::kInvalidValue;
    if (stream.capture != nullptr && stream.capture != capture) {
      stream.capture->is_valid = false;
      return Invalidate(*capture, Error::kCaptureMerge);
    }
    if (stream.capture == nullptr) Join(stream, *capture);
    for (GraphNode* node : event.frontier) {
      if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end()) {
        stream.frontier.push_back(node);
      }
    }
    return Error::kNone;
  }
  if (stream.capture != nullptr) return Invalidate(*stream.capture, Error::kCaptureIsolation);
  stream.busy_until_ns = std::max(stream.busy_until_ns, event.done_at_ns);
  stream.host_ticket = std::max(stream.host_ticket, event.host_ticket);
  if (lag_.work_ns > 0) stream.waits.push_back({++stream.given, event.stream_id, event.given});
  return Error::kNone;
}

Error Streams::SubmitEvent(StreamModel& stream, NodeKind kind, EventModel& event) {
  if (stream.capture == nullptr) return Error::kIllegalState;
  if (!stream.capture->is_valid) return Error::kCaptureInvalidated;
  GraphNode* node = stream.capture->graph->Add(kind, stream.frontier);
  node->event = &event;
  stream.frontier = {node};
  return Error::kNone;
}

void Streams::Finish(std::uint64_t stream_id, std::uint64_t given) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> to_finish = {{stream_id, given}};
  while (!to_finish.empty()) {
    const auto [id, count] = to_finish.back();
    to_finish.pop_back();
    const auto it = by_id_.find(id);
    if (it == by_id_.end() || it->second->done >= count) continue;
    StreamModel& stream = *it->second;
    stream.done = count;
    std::erase_if(stream.waits, [&, &last = count](const StreamModel::Wait& wait) {
      if (wait.at > last) return false;
      to_finish.emplace_back(wait.stream_id, wait.given);
      return true;
    });
  }
}

Error Streams::AskedOfCapture(std::uint64_t id) {
  Capture* capture = FindCapture(id);
  return capture == nullptr || !capture->is_valid ? Error::kInvalidValue : Invalidate(*capture, Error::kCapturedEvent);
}

Error Streams::Query(EventModel& event, std::uint64_t host_done) {
  if (event.capture_id != 0) return AskedOfCapture(event.capture_id);
  if (!event.is_recorded) return Error::kNone;
  now_ns_ += kCallNs;
  if (event.host_ticket > host_done) return Error::kNotReady;
  const auto it = by_id_.find(event.stream_id);
  if (it == by_id_.end() || it->second->done >= event.given) return Error::kNone;
  if (lag_.is_none()) {
    ++found_done_;
    return Error::kNone;
  }
  if (lag_.queries > 0) return ++event.queries >= lag_.queries ? Error::kNone : Error::kNotReady;
  if (now_ns_ < event.done_at_ns) return Error::kNotReady;
  Finish(event.stream_id, event.given);
  return Error::kNone;
}

Error Streams::Query(StreamModel& stream, std::uint64_t host_done) {
  if (stream.capture != nullptr) return Invalidate(*stream.capture, Error::kCaptureUnsupported);
  now_ns_ += kCallNs;
  if (stream.host_ticket > host_done) return Error::kNotReady;
  if (lag_.is_none() || stream.done >= stream.given) return Error::kNone;
  const bool is_done = lag_.queries > 0 ? ++stream.queries >= lag_.queries : now_ns_ >= stream.busy_until_ns;
  if (!is_done) return Error::kNotReady;
  if (lag_.queries == 0) Finish(stream.id, stream.given);
  return Error::kNone;
}

Error Streams::Synchronize(EventModel& event) {
  if (event.capture_id != 0) return AskedOfCapture(event.capture_id);
  if (!event.is_recorded) return Error::kNone;
  now_ns_ = std::max(now_ns_ + kCallNs, event.done_at_ns);
  event.queries = lag_.queries;
  if (lag_.queries == 0) Finish(event.stream_id, event.given);
  return Error::kNone;
}

Error Streams::Synchronize(StreamModel& stream) {
  if (stream.capture != nullptr) return Invalidate(*stream.capture, Error::kCaptureUnsupported);
  now_ns_ = std::max(now_ns_ + kCallNs, stream.busy_until_ns);
  stream.queries = lag_.queries;
  if (lag_.queries == 0) Finish(stream.id, stream.given);
  return Error::kNone;
}

void Streams::SynchronizeDevice(int device) {
  for (const auto& [id, stream] : by_id_) {
    if (stream->device != device || stream->capture != nullptr) continue;
    now_ns_ = std::max(now_ns_, stream->busy_until_ns);
    Finish(id, stream->given);
  }
  now_ns_ += kCallNs;
}

void Streams::SynchronizeBlocking(int device) {
  for (const auto& [id, stream] : by_id_) {
    const bool blocks = stream->device == device && (stream->flags & kNonBlocking) == 0;
    if (!blocks || stream->capture != nullptr) continue;
    now_ns_ = std::max(now_ns_, stream->busy_until_ns);
    stream->queries = lag_.queries;
    if (lag_.queries == 0) Finish(id, stream->given);
  }
}

std::uint64_t Streams::LastHostTicket(int device) const {
  std::uint64_t last = 0;
  for (const auto& [id, stream] : by_id_) {
    if (stream->device == device) last = std::max(last, stream->host_ticket);
  }
  return last;
}

Error Streams::ElapsedMs(const EventModel& begin, const EventModel& end, float* ms) {
  if (((begin.flags | end.flags) & kEventDisableTiming) != 0 || !begin.is_recorded || !end.is_recorded) {
    return Error::kInvalidHandle;
  }
  if (begin.device != end.device) return Error::kInvalidHandle;
  if (begin.capture_id != 0) return AskedOfCapture(begin.capture_id);
  if (end.capture_id != 0) return AskedOfCapture(end.capture_id);
  const double ns = static_cast<double>(end.done_at_ns) - static_cast<double>(begin.done_at_ns);
  *ms = static_cast<float>(ns / 1e6);
  return Error::kNone;
}

Error Streams::Invalidate(Capture& capture, Error error) {
  capture.is_valid = false;
  return error;
}

void Streams::Join(StreamModel& stream, Capture& capture) {
  stream.capture = &capture;
  stream.frontier.clear();
  capture.streams.push_back(&stream);
}

Capture* Streams::FindCapture(std::uint64_t id) {
  const auto it = std::find_if(captures_.begin(), captures_.end(), [&](const auto& own) { return own->id == id; });
  return it == captures_.end() ? nullptr : it->get();
}

Graph* Streams::FindCapturedGraph(const void* graph) {
  for (const auto& capture : captures_) {
    if (capture->graph.get() == graph) return capture->graph.get();
  }
  return nullptr;
}

Graph* Streams::FindCapturedGraphHaving(const GraphNode* node) {
  for (const auto& capture : captures_) {
    if (capture->graph->Has(node)) return capture->graph.get();
  }
  return nullptr;
}

Error Streams::BeginCapture(StreamModel& stream, CaptureMode mode, std::uint64_t thread, std::unique_ptr<Graph> into,
                            std::vector<GraphNode*> after) {
  if (stream.capture != nullptr) return Error::kIllegalState;
  if (std::find(defaults_.begin(), defaults_.end(), &stream) != defaults_.end()) return Error::kCaptureUnsupported;
  auto capture = std::make_unique<Capture>();
  capture->id = next_id_++;
  capture->mode = mode;
  capture->thread = thread;
  capture->origin = &stream;
  capture->is_given_back = into != nullptr;
  capture->graph = into == nullptr ? std::make_unique<Graph>() : std::move(into);
  Join(stream, *capture);
  stream.frontier = std::move(after);
  captures_.push_back(std::move(capture));
  capture_count_.store(captures_.size(), std::memory_order_relaxed);
  return Error::kNone;
}

Error Streams::EndCapture(StreamModel& stream, std::uint64_t thread, std::unique_ptr<Graph>* graph) {
  Capture* capture = stream.capture;
  if (capture == nullptr) return Error::kIllegalState;
  if (capture->origin != &stream) return Invalidate(*capture, Error::kCaptureUnmatched);
  if (capture->mode != CaptureMode::kRelaxed && capture->thread != thread) return Error::kCaptureWrongThread;
  Error error = capture->is_valid ? Error::kNone : Error::kCaptureInvalidated;
  for (StreamModel* joined : capture->streams) {
    for (const GraphNode* node : joined->frontier) {
      const bool is_joined = capture->graph->IsBefore(node, stream.frontier);
      if (!is_joined && error == Error::kNone) error = Error::kCaptureUnjoined;
    }
  }
  for (StreamModel* joined : capture->streams) {
    joined->capture = nullptr;
    if (joined != &stream) joined->frontier.clear();
  }
  stream.frontier.clear();
  if (error == Error::kNone || capture->is_given_back) *graph = std::move(capture->graph);
  std::erase_if(captures_, [&](const auto& own) { return own.get() == capture; });
  capture_count_.store(captures_.size(), std::memory_order_relaxed);
  return error;
}

Error Streams::CheckUnsafeCall(CaptureMode mode, std::uint64_t thread) {
  if (captures_.empty() || mode == CaptureMode::kRelaxed) return Error::kNone;
  for (const auto& capture : captures_) {
    const bool is_forbidden =
        capture->mode != CaptureMode::kRelaxed &&
        (capture->thread == thread || (mode == CaptureMode::kGlobal && capture->mode == CaptureMode::kGlobal));
    if (is_forbidden) return Invalidate(*capture, Error::kCaptureUnsupported);
  }
  return Error::kNone;
}

Error Streams::CheckLegacyCall() {
  for (const auto& capture : captures_) {
    for (const StreamModel* stream : capture->streams) {
      if ((stream->flags & kNonBlocking) == 0) return Invalidate(*capture, Error::kCaptureImplicit);
    }
  }
  return Error::kNone;
}

}  // namespace ashlar::hollow
