// What plans of cuDNN ask for, asked of a small stand-in for the library: after a run, and while it is under way.
#include "launcher/cudnn_workspaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cudnn_process.h"
#include "launcher/cudnn_server.h"

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
  EXPECT_EQ(told.answered, 2U) << "it is started again";
  EXPECT_EQ(told.most_bytes, 12'000U);
  const std::string ends = Graph(11, 0, /*mode=*/7);
  EXPECT_EQ(AskCudnn(Plans({ends, ends, ends, Graph(10, 0)}), kAmple).answered, 0U) << "three times, and no more";
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
  plans.library = "";
  EXPECT_EQ(AskCudnn(plans, kAmple).why_not, "the program has loaded no libcudnn");
  EXPECT_EQ(AskCudnn(Plans({}), kAmple).plans, 0U);
}

TEST(CudnnWorkspacesTest, ItsConfigurationsComeWithTheirNotes) {
  CudnnProcess library({ASHLAR_STAND_IN_CUDNN, "", R"({"deviceVer":900})"});
  EXPECT_EQ(library.Ask("configs " + Graph(10, 0), kAmple), "* 0:5:999:1:3 1:6:10000::3");
  EXPECT_EQ(library.Ask("plan:0 " + Graph(10, 0), kAmple), "= 999");
  EXPECT_EQ(library.Ask("plan:1 " + Graph(12, 0), kAmple), "= 12000") << "of a graph that was not asked about before";
  EXPECT_EQ(library.Ask("plan:2 " + Graph(10, 0), kAmple), "-") << "there are two";
  EXPECT_EQ(library.Ask("configs " + Graph(13, 0), kAmple), "-") << "none becomes a plan";
}

// A question as a process of a run puts it.
std::string AskServer(const std::string& path, const std::string& question) {
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  std::string out;
  if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    EXPECT_EQ(write(file, question.data(), question.size()), static_cast<ssize_t>(question.size()));
    shutdown(file, SHUT_WR);
    char bytes[1000];
    for (ssize_t count = 0; (count = read(file, bytes, sizeof(bytes))) > 0;) out.append(bytes, count);
  }
  close(file);
  return out;
}

TEST(CudnnServerTest, ItAsksEachLibraryForAllProcesses) {
  const std::string folder = testing::TempDir();
  const std::string path = CudnnServer::PathIn(folder);
  const std::string device = "\n\n{\"deviceVer\":900}\n", here = ASHLAR_STAND_IN_CUDNN + device;
  unlink(path.c_str());
  {
    const absl::StatusOr<std::unique_ptr<CudnnServer>> server = CudnnServer::Start(folder);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ(AskServer(path, here + "plan:1 " + Graph(10, 0) + "\n"), "= 10000\n");
    EXPECT_EQ(AskServer(path, here + "configs " + Graph(11, 0) + "\n"), "* 0:5:999:1:3 1:6:11000::3\n");
    EXPECT_EQ(AskServer(path, "/none/libcudnn.so.9" + device + "configs " + Graph(11, 0) + "\n"),
              "? 0 its library could not be loaded\n");
    EXPECT_EQ(AskServer(path, here + "configs " + Graph(10, 0, /*mode=*/7) + "\n"),
              "? 91234 its library ended its process\n");
    EXPECT_EQ(AskServer(path, here + "plan:0 " + Graph(10, 0) + "\n"), "= 999\n") << "it is started again";
    EXPECT_EQ(AskServer(path, "no question"), "? 0 the question is cut off\n");
  }
  EXPECT_EQ(AskServer(path, here + "plan:1 " + Graph(10, 0) + "\n"), "") << "it has ended";
  unlink(path.c_str());
}

TEST(CudnnServerTest, AFolderWithoutPlaceForASocketIsTold) {
  const auto server = CudnnServer::Start(testing::TempDir() + std::string(120, 'x'));
  EXPECT_THAT(std::string(server.status().message()), testing::HasSubstr("set TMPDIR to a shorter one"));
}

TEST(CudnnWorkspacesTest, WhatWasDoneIsOneSentence) {
  using testing::HasSubstr;
  const std::string all = WorkspacesText({.plans = 2, .answered = 2, .most_bytes = 1 << 20, .version = 92400});
  EXPECT_THAT(all, HasSubstr("2 of 2 plans had the workspace that cuDNN 9.24 names by its heuristics without a device, "
                             "the largest 1.00 MiB; a GPU may take others"));
  EXPECT_THAT(WorkspacesText({.plans = 3, .answered = 2, .version = 92400}),
              HasSubstr(", and 1 had 0 B, as it had no answer;"));
  EXPECT_THAT(WorkspacesText({.plans = 3, .version = 8904, .why_not = "its library takes no device that is not there"}),
              HasSubstr("0 B for 3 plans, as without it: cuDNN 8.9 makes no plan without a device: put 9.8 or later"));
  EXPECT_THAT(WorkspacesText({.plans = 1, .why_not = "its library could not be loaded"}),
              HasSubstr("cuDNN: its library could not be loaded: see that libcudnn and libcublasLt load"));
  EXPECT_THAT(WorkspacesText({}), HasSubstr("the program made no plan"));
}

}  // namespace
}  // namespace ashlar::cli
