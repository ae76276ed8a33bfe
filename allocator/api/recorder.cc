#include "ashlar/recorder.h"

#include <utility>

#include "allocator/api/allocator_impl.h"
#include "allocator/core/recorder.h"

namespace ashlar {
namespace {

using StackOfProgram = std::function<std::vector<StackFrame>()>;

core::StackOf InternedStack(StackOfProgram stack_of) {
  if (!stack_of) return {};
  return [stack_of = std::move(stack_of)](const trace::Event&, trace::StackTable& stacks) {
    std::vector<trace::FrameId> frames;
    for (const StackFrame& frame : stack_of())
      frames.push_back(stacks.InternFrame(frame.file, frame.line, frame.function));
    return frames.empty() ? trace::kNoStack : stacks.InternStack(frames);
  };
}

core::RecorderSettings OptionsOf(const RecorderOptions& options) {
  return {.ring_bytes = options.ring_bytes,
          .chunk_bytes = options.chunk_bytes,
          .device = options.device,
          .stack_of = InternedStack(options.stack_of),
          .overwrites = options.overwrites};
}

}  // namespace

struct Recorder::Impl {
  explicit Impl(std::unique_ptr<core::Recorder> own) : recorder(std::move(own)) {}
  const std::unique_ptr<core::Recorder> recorder;
};

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::ToFile(Allocator& allocator, const std::string& path,
                                                           const RecorderOptions& options) {
  absl::StatusOr<std::unique_ptr<core::Recorder>> recorder =
      core::Recorder::ToFile(&allocator.impl().allocator, path, OptionsOf(options));
  if (!recorder.ok()) return std::move(recorder).status();
  return std::unique_ptr<Recorder>(new Recorder(std::make_unique<Impl>(*std::move(recorder))));
}

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Ring(Allocator& allocator, const RecorderOptions& options) {
  absl::StatusOr<std::unique_ptr<core::Recorder>> recorder =
      core::Recorder::Ring(&allocator.impl().allocator, OptionsOf(options));
  if (!recorder.ok()) return std::move(recorder).status();
  return std::unique_ptr<Recorder>(new Recorder(std::make_unique<Impl>(*std::move(recorder))));
}

Recorder::Recorder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recorder::~Recorder() = default;

absl::Status Recorder::Write(const std::string& path) { return impl_->recorder->Write(path); }
absl::StatusOr<std::string> Recorder::Bytes() { return impl_->recorder->Bytes(); }
absl::Status Recorder::Flush() { return impl_->recorder->Flush(); }
absl::Status Recorder::Finish() { return impl_->recorder->Finish(); }
absl::Status Recorder::status() const { return impl_->recorder->status(); }
std::uint64_t Recorder::event_count() const { return impl_->recorder->event_count(); }
std::string Recorder::path() const { return impl_->recorder->path(); }

}  // namespace ashlar
