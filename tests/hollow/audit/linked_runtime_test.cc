// Programs and libraries with a CUDA runtime linked in, under `ashlar dry-run`. The runtime is a stand-in, so that no
// toolkit is needed; where there is nvcc, its own programs follow.
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/hollow/record/program_run.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

#if defined(__aarch64__)
constexpr char kDynamicLinker[] = "/lib/ld-linux-aarch64.so.1 ";
#else
constexpr char kDynamicLinker[] = "/lib64/ld-linux-x86-64.so.2 ";
#endif
constexpr char kServed[] = "0 1 0 0 801\n";               // a count of devices, memory, and a function of later years
constexpr char kServedByNames[] = "0 1 0 0 4242\n";       // without its symbol nobody knows the last one
constexpr char kNotServed[] = "4242 0 4242 4242 4242\n";  // the runtime itself answered

class LinkedRuntimeTest : public AshlarTest {
 protected:
  CommandResult DryRun(const std::string& program) const {
    return Shell(absl::StrCat("ashlar dry-run --device A10 -- ", program));
  }
  // A copy without its names.
  std::string Stripped(const std::string& file, const std::string& name) const {
    EXPECT_EQ(Shell(absl::StrCat("strip -o ", name, " ", file)).code, 0);
    return folder() + name;
  }
};

TEST_F(LinkedRuntimeTest, AProgramIsServedBySymbols) {
  const CommandResult run = DryRun(ASHLAR_AUDIT_CLIENT);
  EXPECT_EQ(run.out, kServed) << run.error;
  EXPECT_THAT(run.error, HasSubstr("1 x a newer function of a CUDA runtime that is linked in"));
  EXPECT_THAT(run.error, HasSubstr("asked for by the program (audit_client) 1.00 MiB"));
}

TEST_F(LinkedRuntimeTest, WithoutTheAuditorItsOwnRuntimeAnswers) {
  EXPECT_EQ(Shell(absl::StrCat("hollow ", ASHLAR_AUDIT_CLIENT)).out, kNotServed);
}

TEST_F(LinkedRuntimeTest, StartedByTheDynamicLinker) {
  const CommandResult run = DryRun(absl::StrCat(kDynamicLinker, ASHLAR_AUDIT_CLIENT));
  EXPECT_EQ(run.out, kServed) << run.error;
}

TEST_F(LinkedRuntimeTest, AProgramThatLiesWhereItWasLinkedFor) {
  EXPECT_EQ(DryRun(ASHLAR_AUDIT_FIXED_CLIENT).out, kServed);
}

TEST_F(LinkedRuntimeTest, AStrippedOneIsServedByNames) {
  const CommandResult run = DryRun(Stripped(ASHLAR_AUDIT_CLIENT, "stripped"));
  EXPECT_EQ(run.out, kServedByNames) << run.error;
  EXPECT_EQ(DryRun(Stripped(ASHLAR_AUDIT_FIXED_CLIENT, "stripped_fixed")).out, kServedByNames);
}

TEST_F(LinkedRuntimeTest, AStrippedOneWithKernelsIsRefusedBeforeItStarts) {
  EXPECT_EQ(DryRun(ASHLAR_AUDIT_KERNELS_CLIENT).out, kServed) << "with its names it is served";
  const std::string stripped = Stripped(ASHLAR_AUDIT_KERNELS_CLIENT, "stripped");
  const CommandResult run = DryRun(stripped);
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.error, HasSubstr(stripped + ": its CUDA runtime is linked in and stripped of names"));
  // Started by another program it runs as it is.
  EXPECT_EQ(DryRun(absl::StrCat("env ", stripped)).out, kNotServed);
}

TEST_F(LinkedRuntimeTest, LibrariesAreServedWhenTheyAreOpened) {
  const std::string stripped = Stripped(ASHLAR_AUDIT_LIBRARY_CLIENT, "stripped.so");
  const CommandResult run =
      DryRun(absl::StrCat(ASHLAR_AUDIT_OPENER, " open ", ASHLAR_AUDIT_LIBRARY_CLIENT, " ", stripped));
  EXPECT_EQ(run.out, absl::StrCat(kServed, kServed, kServedByNames, kServedByNames)) << run.error;
}

TEST_F(LinkedRuntimeTest, ALibraryThatAProgramNeeds) { EXPECT_EQ(DryRun(ASHLAR_AUDIT_NEEDING_CLIENT).out, kServed); }

// Each function goes on in the first of the preloaded libraries that has it.
TEST_F(LinkedRuntimeTest, ItIsServedByTheAllocatorAndRecordedAboveIt) {
  for (const char* flags : {"--serve", "--serve --record -o kept.ashlar"}) {
    const CommandResult run = DryRun(absl::StrCat(ASHLAR_PROGRAM, " run-under ", flags, " -- ", ASHLAR_AUDIT_CLIENT));
    EXPECT_EQ(run.out, kServed) << run.error;
    EXPECT_THAT(run.error, HasSubstr("served 1 allocation and 1 free by 1 call of the device")) << flags;
  }
  EXPECT_THAT(Shell("ashlar explain kept.ashlar").out, HasSubstr("1.00 MiB"));
}

TEST_F(LinkedRuntimeTest, AnAuditorOfTheUsersOwnIsKept) {
  const CommandResult run = Shell("LD_AUDIT=/none/mine.so\nexport LD_AUDIT\nashlar dry-run -- sh -c 'echo $LD_AUDIT'");
  EXPECT_THAT(run.out, HasSubstr("libashlar_audit.so:/none/mine.so\n"));
}

constexpr char kNvcc[] = "/usr/local/cuda/bin/nvcc";

// What nvcc makes by default: its runtime is linked in.
class LinkedByNvccTest : public LinkedRuntimeTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kNvcc)) GTEST_SKIP() << "there is no " << kNvcc;
  }
  void Compile(const std::string& output, const std::string& flags, const std::string& program = "leak") const {
    const CommandResult built = Shell(absl::StrCat(kNvcc, " -o ", output, " ", flags, " ", ASHLAR_SOURCE_DIR,
                                                   "/conformance/native/", program, ".cu"));
    ASSERT_EQ(built.code, 0) << built.error;
  }
  // The calls on device memory that it makes, a line each.
  std::string CallsOf(const std::string& program) const {
    const CommandResult run = Shell(absl::StrCat("ashlar dry-run --device A10 --calls calls -- ", program));
    EXPECT_EQ(run.code, 0) << run.error;
    return BytesOf(folder() + "calls");
  }
};

TEST_F(LinkedByNvccTest, ItsCallsAreThoseOfItsTwinWithTheSharedRuntime) {
  for (const char* program : {"leak", "turns", "sort"}) {
    SCOPED_TRACE(program);
    Compile("shared", "-cudart shared", program);
    const std::string wanted = CallsOf("./shared");
    EXPECT_THAT(wanted, StartsWith("allocate 0 "));
    Compile("linked", "", program);
    EXPECT_EQ(CallsOf("./linked"), wanted);
    EXPECT_EQ(CallsOf(absl::StrCat(kDynamicLinker, "./linked")), wanted);
    ASSERT_EQ(Shell("strip -g linked").code, 0);
    EXPECT_EQ(CallsOf("./linked"), wanted);
  }
}

// Sizes and frees in their order, and the native lines that hold and leak memory. Not what the driver had in use, which
// is asked by the clock.
TEST_F(LinkedByNvccTest, ItsRecordIsThatOfItsTwin) {
  for (const char* program : {"leak", "turns"}) {
    SCOPED_TRACE(program);
    const auto recorded = [&](const std::string& runtime, const std::string& command) {
      const CommandResult run =
          Shell(absl::StrCat("cd ", runtime, " && ashlar dry-run --once --device A10 -- ", ASHLAR_PROGRAM, " ", command,
                             " -o kept.ashlar -- ./program > /dev/null && ashlar convert kept.ashlar kept.trace && "
                             "ashlar explain --json kept.ashlar"));
      EXPECT_EQ(run.code, 0) << run.error;
      const nlohmann::json explained = nlohmann::json::parse(run.out, nullptr, /*allow_exceptions=*/false);
      std::string out = BytesOf(absl::StrCat(folder(), runtime, "/kept.trace"));
      EXPECT_THAT(out, StartsWith("a 0 "));
      for (const char* key : {"headline", "peak", "stacks", "live_at_end"}) {
        EXPECT_TRUE(explained.contains(key)) << key;
        absl::StrAppend(&out, key, " ", explained[key].dump(), "\n");
      }
      EXPECT_THAT(out, HasSubstr(" < main"));
      return out;
    };
    for (const char* runtime : {"static", "shared"}) {
      std::filesystem::create_directory(folder() + runtime);
      Compile(absl::StrCat(runtime, "/program"), absl::StrCat("-cudart ", runtime), program);
    }
    for (const char* command : {"record", "run-under --record", "run-under --serve --record"}) {
      EXPECT_EQ(recorded("static", command), recorded("shared", command)) << command;
    }
  }
}

TEST_F(LinkedByNvccTest, ItIsServedAsItsTwinIs) {
  const auto served = [&](const std::string& runtime) {
    Compile(runtime, absl::StrCat("-cudart ", runtime), "turns");
    const CommandResult run = Shell(absl::StrCat("ashlar dry-run --once --device A10 --calls calls -- ", ASHLAR_PROGRAM,
                                                 " run-under --serve -- ./", runtime, " 20"));
    EXPECT_THAT(run.error, HasSubstr("served 80 allocations and 80 frees by 2 calls of the device"));
    return absl::StrCat(run.out, BytesOf(folder() + "calls"));
  };
  EXPECT_EQ(served("static"), served("shared"));
}

TEST_F(LinkedByNvccTest, OfAFixedAddressAndWithMarksOfIndirectCalls) {
  Compile("shared", "-cudart shared");
  const std::string wanted = CallsOf("./shared");
  Compile("fixed", "-Xcompiler -fno-pie,-no-pie");
  EXPECT_EQ(CallsOf("./fixed"), wanted);
  Compile("marked", "-Xcompiler -fcf-protection=full -Xlinker -z,relro,-z,now");
  EXPECT_EQ(CallsOf("./marked"), wanted);
}

// Binaries of the card's own architecture, which nvcc leaves uncompressed, so that first values are read. What
// an array holds is not kept, as of other memory of the device.
TEST_F(LinkedByNvccTest, VariablesArraysAndGraphs) {
  for (const char* runtime : {"static", "shared"}) {
    const CommandResult built = Shell(absl::StrCat(kNvcc, " -arch=sm_86 -o ", runtime, " -cudart ", runtime, " ",
                                                   ASHLAR_SOURCE_DIR, "/tests/hollow/audit/variables.cu"));
    ASSERT_EQ(built.code, 0) << built.error;
    EXPECT_EQ(DryRun(absl::StrCat("./", runtime)).out, "9 3 7 11 0 0 0 no error\n") << runtime;
  }
  EXPECT_EQ(CallsOf("./static"), CallsOf("./shared"));
}

TEST_F(LinkedByNvccTest, StrippedItIsRefused) {
  Compile("linked", "-Xlinker -s");
  const CommandResult run = DryRun("./linked");
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.error, HasSubstr("link it without -s, or with nvcc -cudart shared"));
}

// Programs of one source, whose functions a library has. What is a main no more returns nothing in particular.
TEST_F(LinkedByNvccTest, ALibraryOpenedOrNeeded) {
  Compile("shared", "-cudart shared");
  const std::string wanted = CallsOf("./shared");
  Compile("libprogram.so", "-shared -Xcompiler -fPIC -Dmain=ashlar_test_main");
  std::ofstream(folder() + "needs.cc") << "int ashlar_test_main();\nint main() { ashlar_test_main(); }\n";
  ASSERT_EQ(Shell("c++ -o needs needs.cc -L. -lprogram -Wl,-rpath," + folder()).code, 0);
  EXPECT_EQ(CallsOf("./needs"), wanted);
  std::ofstream(folder() + "opens.cc")
      << "#include <dlfcn.h>\nint main() { void* library = dlopen(\"./libprogram.so\", RTLD_LAZY);\n"
         "  reinterpret_cast<int (*)()>(dlsym(library, \"_Z16ashlar_test_mainv\"))(); }\n";
  ASSERT_EQ(Shell("c++ -o opens opens.cc -ldl").code, 0);
  EXPECT_EQ(CallsOf("./opens"), wanted);
}

}  // namespace
}  // namespace ashlar
