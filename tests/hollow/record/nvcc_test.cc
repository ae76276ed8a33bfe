// Programs as users build them, by nvcc, under `ashlar dry-run` and `ashlar record`. Skipped where there is no nvcc.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/hollow/record/program_run.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kCompiler[] = "/usr/local/cuda/bin/nvcc";

class NvccTest : public AshlarTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kCompiler)) GTEST_SKIP() << "there is no " << kCompiler;
  }
  void Compile(const std::string& name, const std::string& flags = "") const {
    const CommandResult built = Shell(absl::StrCat(kCompiler, " -cudart shared -o ", name, " ", ASHLAR_SOURCE_DIR,
                                                   "/conformance/native/", name, ".cu ", flags));
    ASSERT_EQ(built.code, 0) << built.error;
  }
  // The program's own output, then the report.
  json DryRun(const std::string& name, std::string& output) const {
    const CommandResult run = Shell(absl::StrCat("ashlar dry-run --device A10 --json -- ./", name));
    EXPECT_EQ(run.code, 0) << run.error;
    output = run.error;
    return json::parse(run.out, nullptr, /*allow_exceptions=*/false);
  }
  struct Count {
    std::uint64_t peak = 0, held = 0;
  };
  static Count CountOf(const std::string& output) {
    unsigned long long peak = 0, held = 0;
    const std::size_t at = output.find("peak ");
    if (at == std::string::npos) {
      ADD_FAILURE() << output;
      return {};
    }
    EXPECT_EQ(std::sscanf(output.c_str() + at, "peak %llu held %llu", &peak, &held), 2);
    return {peak, held};
  }
};

TEST_F(NvccTest, ThePlantedLeakIsFoundWithTheLineThatMadeIt) {
  Compile("leak");
  std::string output;
  const json report = DryRun("leak", output);
  const Count own = CountOf(output);
  EXPECT_EQ(own.held, 4 << 20);
  EXPECT_EQ(report["explanation"]["peak"]["allocated_bytes"], own.peak);
  const json& left = report["explanation"]["live_at_end"];
  EXPECT_EQ(left["bytes"], own.held);
  EXPECT_EQ(left["stacks"][0]["label"], "leak Grab < Turn < main");
  const CommandResult recorded =
      Shell(absl::StrCat("export LD_PRELOAD=", ASHLAR_HOLLOW_LIBRARY, "\nashlar record -o kept.ashlar -- ./leak"));
  EXPECT_EQ(recorded.code, 0) << recorded.error;
  EXPECT_THAT(Shell("ashlar explain kept.ashlar").out,
              AllOf(HasSubstr("NOT FREED   (4.00 MiB in 1 allocation"), HasSubstr("leak Grab < Turn < main")));
}

TEST_F(NvccTest, ThrustsAllocationsAreTheProgramsOwn) {
  Compile("sort", "-arch=sm_86");  // the device's own
  std::string output;
  const json report = DryRun("sort", output);
  const json& stacks = report["explanation"]["stacks"];
  ASSERT_FALSE(stacks.empty()) << output;
  EXPECT_EQ(stacks[0]["label"], "sort SortThem < main");
  EXPECT_GE(stacks[0]["bytes"].get<std::uint64_t>(), (std::uint64_t{16} << 20) * sizeof(int));
  EXPECT_EQ(report["explanation"]["live_at_end"]["bytes"], 0);
}

TEST_F(NvccTest, VirtualMemoryOfTheDriver) {
  // A stand-in to link with, as a toolkit's stubs: it is not what is called.
  std::string stub;
  for (const char* name : {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemGetAllocationGranularity",
                           "cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemRelease", "cuMemUnmap"}) {
    absl::StrAppend(&stub, "int ", name, "(void) { return 999; }\n");
  }
  std::ofstream(folder() + "stub.c") << stub;
  const CommandResult built = Shell("cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o libcuda.so stub.c");
  ASSERT_EQ(built.code, 0) << built.error;
  Compile("pages", absl::StrCat("-L", folder(), " -lcuda"));
  std::string output;
  const json report = DryRun("pages", output);
  const Count own = CountOf(output);
  EXPECT_EQ(report["explanation"]["peak"]["allocated_bytes"], own.peak);
  EXPECT_EQ(report["explanation"]["live_at_end"]["bytes"], own.held);
  EXPECT_EQ(report["explanation"]["live_at_end"]["stacks"][0]["label"], "pages Grow < main");
}

}  // namespace
}  // namespace ashlar
