// What a run's plans of cuDNN would ask for, asked of a small stand-in for the library.
#include "launcher/cudnn_workspaces.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

constexpr std::chrono::seconds kAmple{30};

// A graph of an operation of this kind over a tensor of this type: 0 is float, 2 half.
std::string Graph(int kind, int data_type, int mode = 0) {
  return absl::StrCat("{\"mode\":", mode, ",\"graph\":{\"kind\":15,\"set\":[[801,15,1,[{\"kind\":", kind,
                      ",\"set\":[[704,15,1,[{\"kind\":17,\"set\":[[901,1,1,\"0", data_type, "000000\"]]}]]]}]]]}}");
}

CudnnPlans Plans(std::vector<std::string> graphs) {
  return {
      .library = ASHLAR_STAND_IN_CUDNN, .cublaslt = "", .device = R"({"deviceVer":900})", .graphs = std::move(graphs)};
}

TEST(CudnnWorkspacesTest, ThePlanThatAsksMostCounts) {
  const libraries::CudnnUse told = AskCudnn(Plans({Graph(10, 0), Graph(12, 0), Graph(11, 0)}), kAmple);
  EXPECT_EQ(told.plans, 3U);
  EXPECT_EQ(told.answered, 3U);
  EXPECT_EQ(told.most_bytes, 12'000U);
  EXPECT_EQ(told.version, 91234U);
  EXPECT_EQ(told.why_not, "");
}

TEST(CudnnWorkspacesTest, WhatConvertsInputsDownIsNotTakenForFloat) {
  EXPECT_EQ(AskCudnn(Plans({Graph(10, 2)}), kAmple).most_bytes, 999U);
  EXPECT_EQ(AskCudnn(Plans({Graph(10, 0)}), kAmple).most_bytes, 10'000U);
}

TEST(CudnnWorkspacesTest, WhatHasNoPlanIsNotAnswered) {
  const libraries::CudnnUse told = AskCudnn(Plans({Graph(13, 0), "no JSON", Graph(10, 0)}), kAmple);
  EXPECT_EQ(told.plans, 3U);
  EXPECT_EQ(told.answered, 1U);
}

TEST(CudnnWorkspacesTest, ALibraryThatEndsItsProcessEndsNoOther) {
  const libraries::CudnnUse told = AskCudnn(Plans({Graph(10, 0), Graph(11, 0, /*mode=*/7), Graph(12, 0)}), kAmple);
  EXPECT_EQ(told.answered, 1U);
  EXPECT_EQ(told.most_bytes, 10'000U);
}

TEST(CudnnWorkspacesTest, ALibraryThatTakesLongIsNotWaitedFor) {
  const auto began = std::chrono::steady_clock::now();
  const libraries::CudnnUse told = AskCudnn(Plans({Graph(10, 0, /*mode=*/8)}), std::chrono::seconds(2));
  EXPECT_EQ(told.answered, 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
}

TEST(CudnnWorkspacesTest, WhyItWasNotAskedIsSaid) {
  CudnnPlans plans = Plans({Graph(10, 0)});
  plans.device = "{}";
  EXPECT_EQ(AskCudnn(plans, kAmple).why_not, "its library takes no device that is not there");
  plans.library = "/none/libcudnn.so.9";
  EXPECT_EQ(AskCudnn(plans, kAmple).why_not, "its library could not be loaded");
  EXPECT_EQ(AskCudnn(Plans({}), kAmple).plans, 0U);
}

}  // namespace
}  // namespace ashlar::cli
