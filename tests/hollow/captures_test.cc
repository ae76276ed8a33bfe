// What a capture records, and what it forbids: CUDA C++ Programming Guide, "Stream Capture".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "hollow/model/streams.h"

namespace ashlar::hollow {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kMe = 1;
constexpr std::uint64_t kOther = 2;  // threads

class CapturesTest : public testing::Test {
 protected:
  Error Give(StreamModel& stream, NodeKind kind = NodeKind::kKernel) {
    return streams_.Submit(stream, kind, {}, &runs_now_);
  }
  Error Begin(CaptureMode mode = CaptureMode::kGlobal) {
    graph_.reset();
    return streams_.BeginCapture(first_, mode, kMe);
  }
  Error End() { return streams_.EndCapture(first_, kMe, &graph_); }
  // What is under way is invalid, and ends so; afterwards the stream takes work as before.
  void ExpectInvalid() {
    EXPECT_EQ(Give(first_), Error::kCaptureInvalidated);
    EXPECT_EQ(streams_.Record(event_, first_), Error::kCaptureInvalidated);
    EXPECT_EQ(End(), Error::kCaptureInvalidated);
    EXPECT_EQ(graph_, nullptr);
    EXPECT_FALSE(streams_.is_capturing());
    EXPECT_EQ(Give(first_), Error::kNone);
    EXPECT_TRUE(runs_now_);
  }

  Streams streams_{{}, 1};
  StreamModel& first_ = *streams_.Create(0, 0, 0);
  StreamModel& second_ = *streams_.Create(0, 1, 0);
  EventModel& event_ = *streams_.CreateEvent(0, 0);
  EventModel& joined_ = *streams_.CreateEvent(0, 0);
  std::unique_ptr<Graph> graph_;
  bool runs_now_ = false;
};

TEST_F(CapturesTest, WorkBecomesNodesInTheirOrder) {
  int runs = 0;
  ASSERT_EQ(Begin(), Error::kNone);
  EXPECT_TRUE(streams_.is_capturing());
  ASSERT_EQ(Give(first_), Error::kNone);
  EXPECT_FALSE(runs_now_);
  ASSERT_EQ(streams_.Submit(first_, NodeKind::kCopy, [&] { ++runs; }, &runs_now_), Error::kNone);
  ASSERT_EQ(End(), Error::kNone);
  EXPECT_FALSE(streams_.is_capturing());
  ASSERT_EQ(graph_->nodes().size(), 2U);
  const GraphNode& copy = *graph_->nodes()[1];
  EXPECT_EQ(copy.kind, NodeKind::kCopy);
  EXPECT_THAT(copy.after, ElementsAre(graph_->nodes()[0].get()));
  EXPECT_EQ(runs, 0) << "a capture runs nothing";
  copy.action();
  EXPECT_EQ(runs, 1);
}

TEST_F(CapturesTest, AStreamJoinsByAnEventAndMustBeJoinedAgain) {
  ASSERT_EQ(Begin(), Error::kNone);
  ASSERT_EQ(Give(first_), Error::kNone);
  ASSERT_EQ(streams_.Record(event_, first_), Error::kNone);
  ASSERT_EQ(streams_.Wait(second_, event_), Error::kNone);
  ASSERT_EQ(Give(second_, NodeKind::kFill), Error::kNone);
  EXPECT_FALSE(runs_now_);
  ASSERT_EQ(streams_.Record(joined_, second_), Error::kNone);
  ASSERT_EQ(Give(first_), Error::kNone);
  ASSERT_EQ(streams_.Wait(first_, joined_), Error::kNone);
  ASSERT_EQ(Give(first_, NodeKind::kHost), Error::kNone);
  ASSERT_EQ(End(), Error::kNone);
  const auto& nodes = graph_->nodes();
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_THAT(nodes[1]->after, ElementsAre(nodes[0].get()));
  EXPECT_THAT(nodes[2]->after, ElementsAre(nodes[0].get()));
  EXPECT_THAT(nodes[3]->after, UnorderedElementsAre(nodes[1].get(), nodes[2].get()));
  EXPECT_EQ(Give(second_), Error::kNone);
  EXPECT_TRUE(runs_now_) << "the joined stream is free again";
}

TEST_F(CapturesTest, WorkThatIsNotJoinedIsAnError) {
  ASSERT_EQ(Begin(), Error::kNone);
  ASSERT_EQ(Give(first_), Error::kNone);
  ASSERT_EQ(streams_.Record(event_, first_), Error::kNone);
  ASSERT_EQ(streams_.Wait(second_, event_), Error::kNone);
  ASSERT_EQ(Give(second_), Error::kNone);
  EXPECT_EQ(End(), Error::kCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
}

TEST_F(CapturesTest, BeginAndEndAreOfOneStreamAndThread) {
  EXPECT_EQ(End(), Error::kIllegalState);
  EXPECT_EQ(streams_.BeginCapture(streams_.Default(0), CaptureMode::kGlobal, kMe), Error::kCaptureUnsupported);
  ASSERT_EQ(Begin(), Error::kNone);
  EXPECT_EQ(Begin(), Error::kIllegalState);
  EXPECT_EQ(streams_.EndCapture(first_, kOther, &graph_), Error::kCaptureWrongThread);
  EXPECT_EQ(End(), Error::kNone) << "it goes on after that";
  ASSERT_EQ(Begin(CaptureMode::kRelaxed), Error::kNone);
  EXPECT_EQ(streams_.EndCapture(first_, kOther, &graph_), Error::kNone) << "a relaxed one ends anywhere";
  ASSERT_EQ(Begin(), Error::kNone);
  ASSERT_EQ(streams_.Record(event_, first_), Error::kNone);
  ASSERT_EQ(streams_.Wait(second_, event_), Error::kNone);
  EXPECT_EQ(streams_.EndCapture(second_, kMe, &graph_), Error::kCaptureUnmatched);
  ExpectInvalid();
}

TEST_F(CapturesTest, ToAskOrWaitForWhatIsCapturedInvalidatesIt) {
  for (int way = 0; way < 3; ++way) {
    ASSERT_EQ(Begin(), Error::kNone);
    const Error error = way == 0   ? streams_.Query(first_, 0)
                        : way == 1 ? streams_.Synchronize(first_)
                                   : streams_.Destroy(first_);
    EXPECT_EQ(error, Error::kCaptureUnsupported) << way;
    ExpectInvalid();
  }
  ASSERT_EQ(Begin(), Error::kNone);
  ASSERT_EQ(streams_.Record(joined_, first_), Error::kNone);
  EXPECT_EQ(streams_.Query(joined_, 0), Error::kCapturedEvent);
  EXPECT_EQ(streams_.Synchronize(joined_), Error::kInvalidValue) << "it is broken now";
  ExpectInvalid();
  EXPECT_EQ(streams_.Query(joined_, 0), Error::kInvalidValue) << "its capture is over";
  EXPECT_EQ(streams_.Wait(second_, joined_), Error::kInvalidValue);
  ASSERT_EQ(Begin(), Error::kNone);
  ASSERT_EQ(streams_.Record(event_, first_), Error::kNone);
  ASSERT_EQ(streams_.Record(joined_, second_), Error::kNone);
  float ms = 0;
  EXPECT_EQ(streams_.ElapsedMs(event_, joined_, &ms), Error::kCapturedEvent);
  ExpectInvalid();
}

TEST_F(CapturesTest, AnExternalEventIsANodeAndStaysAsItWas) {
  EXPECT_EQ(streams_.SubmitEvent(first_, NodeKind::kRecordEvent, event_), Error::kIllegalState) << "no capture";
  ASSERT_EQ(Begin(), Error::kNone);
  ASSERT_EQ(Give(first_), Error::kNone);
  ASSERT_EQ(streams_.SubmitEvent(first_, NodeKind::kRecordEvent, event_), Error::kNone);
  ASSERT_EQ(streams_.SubmitEvent(first_, NodeKind::kWaitEvent, joined_), Error::kNone) << "recorded nowhere";
  EXPECT_FALSE(event_.is_recorded);
  EXPECT_EQ(streams_.Query(event_, 0), Error::kNone);
  ASSERT_EQ(End(), Error::kNone);
  const auto& nodes = graph_->nodes();
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[1]->kind, NodeKind::kRecordEvent);
  EXPECT_EQ(nodes[1]->event, &event_);
  EXPECT_THAT(nodes[1]->after, ElementsAre(nodes[0].get()));
  EXPECT_EQ(nodes[2]->kind, NodeKind::kWaitEvent);
  EXPECT_EQ(nodes[2]->event, &joined_);
  EXPECT_THAT(nodes[2]->after, ElementsAre(nodes[1].get()));
  ASSERT_EQ(Begin(), Error::kNone);
  ASSERT_EQ(streams_.Synchronize(first_), Error::kCaptureUnsupported);
  EXPECT_EQ(streams_.SubmitEvent(first_, NodeKind::kRecordEvent, event_), Error::kCaptureInvalidated);
  ExpectInvalid();
}

TEST_F(CapturesTest, WorkFromOutsideCannotComeIn) {
  ASSERT_EQ(streams_.Record(event_, second_), Error::kNone);
  ASSERT_EQ(Begin(), Error::kNone);
  EXPECT_EQ(streams_.Wait(first_, event_), Error::kCaptureIsolation);
  ExpectInvalid();
}

TEST_F(CapturesTest, TwoCapturesDoNotMerge) {
  ASSERT_EQ(Begin(), Error::kNone);
  ASSERT_EQ(streams_.BeginCapture(second_, CaptureMode::kGlobal, kMe), Error::kNone);
  ASSERT_EQ(streams_.Record(event_, second_), Error::kNone);
  EXPECT_EQ(streams_.Wait(first_, event_), Error::kCaptureMerge);
  EXPECT_EQ(streams_.EndCapture(second_, kMe, &graph_), Error::kCaptureInvalidated);
  ExpectInvalid();
}

TEST_F(CapturesTest, UnsafeCallsAreForbiddenByMode) {
  constexpr CaptureMode kGlobal = CaptureMode::kGlobal, kLocal = CaptureMode::kThreadLocal;
  constexpr CaptureMode kRelaxed = CaptureMode::kRelaxed;
  struct Case {
    CaptureMode capture;
    CaptureMode caller;
    std::uint64_t thread;
    bool is_forbidden;
  };
  for (const Case& one :
       {Case{kGlobal, kGlobal, kMe, true}, Case{kGlobal, kGlobal, kOther, true}, Case{kGlobal, kLocal, kMe, true},
        Case{kGlobal, kLocal, kOther, false}, Case{kGlobal, kRelaxed, kMe, false}, Case{kLocal, kGlobal, kMe, true},
        Case{kLocal, kGlobal, kOther, false}, Case{kLocal, kLocal, kMe, true}, Case{kRelaxed, kGlobal, kMe, false},
        Case{kRelaxed, kGlobal, kOther, false}}) {
    ASSERT_EQ(Begin(one.capture), Error::kNone);
    const Error error = streams_.CheckUnsafeCall(one.caller, one.thread);
    const auto name = [&] {
      return std::to_string(static_cast<int>(one.capture)) + " " + std::to_string(static_cast<int>(one.caller)) + " " +
             std::to_string(one.thread);
    };
    EXPECT_EQ(error, one.is_forbidden ? Error::kCaptureUnsupported : Error::kNone) << name();
    EXPECT_EQ(End(), one.is_forbidden ? Error::kCaptureInvalidated : Error::kNone) << name();
    graph_.reset();
  }
  EXPECT_EQ(streams_.CheckUnsafeCall(kGlobal, kMe), Error::kNone) << "nothing is captured";
}

TEST_F(CapturesTest, TheLegacyStreamWaitsForBlockingOnes) {
  ASSERT_EQ(streams_.BeginCapture(second_, CaptureMode::kRelaxed, kMe), Error::kNone);
  EXPECT_EQ(streams_.CheckLegacyCall(), Error::kNone) << "it was made not to block";
  ASSERT_EQ(streams_.EndCapture(second_, kMe, &graph_), Error::kNone);
  graph_.reset();
  ASSERT_EQ(Begin(CaptureMode::kRelaxed), Error::kNone);
  EXPECT_EQ(streams_.CheckLegacyCall(), Error::kCaptureImplicit);
  ExpectInvalid();
}

TEST_F(CapturesTest, AGraphOfTheProgramsOwnIsGivenBackInAnyCase) {
  for (const bool fails : {false, true}) {
    auto own = std::make_unique<Graph>();
    Graph* handle = own.get();
    GraphNode* root = own->Add(NodeKind::kEmpty, {});
    ASSERT_EQ(streams_.BeginCapture(first_, CaptureMode::kGlobal, kMe, std::move(own), {root}), Error::kNone);
    EXPECT_EQ(streams_.FindCapturedGraph(handle), handle);
    EXPECT_EQ(streams_.FindCapturedGraphHaving(root), handle);
    ASSERT_EQ(Give(first_), Error::kNone);
    if (fails) {
      ASSERT_EQ(streams_.Synchronize(first_), Error::kCaptureUnsupported);
    }
    EXPECT_EQ(End(), fails ? Error::kCaptureInvalidated : Error::kNone);
    ASSERT_EQ(graph_.get(), handle);
    EXPECT_THAT(graph_->nodes()[1]->after, ElementsAre(root));
    EXPECT_EQ(streams_.FindCapturedGraph(handle), nullptr);
  }
}

}  // namespace
}  // namespace ashlar::hollow
