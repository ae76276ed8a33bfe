// What is found of a linked runtime in a file: by symbols, by names, in broken files, and in NVIDIA's own archives,
// where a toolkit or wheels have one.
extern "C" {
#include "hollow/audit/entries.h"
}

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/hollow/audit/mapped_file.h"
#include "tests/hollow/record/program_run.h"

namespace ashlar {
namespace {

using testing::IsEmpty;

// Those that the hollow device has a line for.
const std::set<std::string>& PublicNames() {
  static const auto* names = new std::set<std::string>{
#define ASHLAR_REFUSED(name, status) #name,
#include "hollow/api/names/runtime.inc"
#undef ASHLAR_REFUSED
  };
  return *names;
}

int IsPublic(const void*, const char* name) { return PublicNames().count(name) != 0 ? 1 : 0; }

constexpr AnsweredNames kPublic = {IsPublic, nullptr};

using Search = std::size_t (*)(const ElfFile*, const AnsweredNames*, Entry*, int*);

struct Found {
  std::map<std::string, std::uint64_t> addresses;
  int major = 0;
};

Found FoundBy(Search search, const std::string& bytes) {
  static std::vector<Entry> entries(kMostEntries);
  Found out;
  ElfFile file = {};
  if (ReadElfFile(reinterpret_cast<const Byte*>(bytes.data()), bytes.size(), &file) == 0) return out;
  const std::size_t count = search(&file, &kPublic, entries.data(), &out.major);
  for (std::size_t i = 0; i < count; ++i) out.addresses[entries[i].name] = entries[i].address;
  return out;
}

// Of those found by names: what the symbol table has elsewhere, or not at all.
std::vector<std::string> Differing(const Found& by_names, const Found& by_symbols) {
  std::vector<std::string> out;
  for (const auto& [name, address] : by_names.addresses) {
    const auto it = by_symbols.addresses.find(name);
    if (it == by_symbols.addresses.end() || it->second != address) out.push_back(name);
  }
  return out;
}

class AuditEntriesTest : public AshlarTest {
 protected:
  // NVIDIA's archives that are here: a toolkit's, those of wheels, and those that ASHLAR_RUNTIME_ARCHIVES names, with
  // colons between.
  std::vector<std::string> Archives() const {
    const std::string wheels = "/*/lib/python*/site-packages/nvidia/*/lib/libcudart_static.a";
    const std::string listed = Shell("ls /usr/local/cuda/lib*/libcudart_static.a " +
                                     std::string("${ASHLAR_REAL_VENVS:-$HOME/.cache/ashlar/venvs}") + wheels +
                                     " $(echo $ASHLAR_RUNTIME_ARCHIVES | tr : ' ')")
                                   .out;
    return absl::StrSplit(listed, '\n', absl::SkipEmpty());
  }
  // The archive as a whole in one library.
  std::string Linked(const std::string& archive) const {
    const std::string library = folder() + "linked.so";
    EXPECT_EQ(Shell(absl::StrCat("cc -shared -o ", library, " -Wl,--whole-archive ", archive,
                                 " -Wl,--no-whole-archive -ldl -lrt -lpthread"))
                  .code,
              0);
    return library;
  }
  // What the runtime says of itself, which asks no driver: 13050.
  int VersionOf(const std::string& archive) const {
    std::ofstream(folder() + "version.c") << "#include <stdio.h>\nint cudaRuntimeGetVersion(int*);\n"
                                             "int main() { int version = 0; cudaRuntimeGetVersion(&version);\n"
                                             "  printf(\"%d\", version); }\n";
    const CommandResult run =
        Shell(absl::StrCat("cc -o version version.c ", archive, " -ldl -lrt -lpthread -lm && ./version"));
    EXPECT_EQ(run.code, 0) << run.error;
    int version = 0;
    EXPECT_TRUE(absl::SimpleAtoi(run.out, &version)) << run.out;
    return version;
  }
};

TEST_F(AuditEntriesTest, NamesFindWhatTheSymbolTableHas) {
  const std::string file = BytesOf(ASHLAR_AUDIT_LIBRARY_CLIENT);
  const Found by_symbols = FoundBy(EntriesBySymbols, file), by_names = FoundBy(EntriesByNames, file);
  EXPECT_GT(by_names.addresses.size(), 300U);
  EXPECT_THAT(Differing(by_names, by_symbols), IsEmpty());
  EXPECT_EQ(by_symbols.addresses.count("__cudaRegisterFatBinary"), 1U);
  EXPECT_EQ(by_symbols.addresses.count("cudaOfLaterYears"), 1U) << "lies among the others";
  EXPECT_EQ(by_symbols.addresses.count("cudaRuntimeGetVersion"), 0U);
  EXPECT_EQ(by_names.addresses.count("cudaRuntimeGetVersion"), 0U);
}

TEST_F(AuditEntriesTest, AnotherProgramHasNone) {
  const std::string file = BytesOf("/proc/self/exe");
  EXPECT_THAT(FoundBy(EntriesBySymbols, file).addresses, IsEmpty());
  ElfFile elf = {};
  ASSERT_NE(ReadElfFile(reinterpret_cast<const Byte*>(file.data()), file.size(), &elf), 0);
  EXPECT_EQ(FindEntries(&elf, &kPublic)->kind, kNoRuntime);
}

TEST_F(AuditEntriesTest, BrokenFilesAreReadToTheirEndAndNoFurther) {
  const std::string whole = BytesOf(ASHLAR_AUDIT_LIBRARY_CLIENT);
  std::minstd_rand random(7);
  const auto draw = [&random](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
  };
  for (int turn = 0; turn < 400; ++turn) {
    std::string broken = whole;
    if (turn % 2 == 0) broken.resize(draw(whole.size()));
    // The headers are where a change matters most.
    for (int i = 0; i < 4 && broken.size() > 64; ++i) {
      const std::size_t headers = broken.size() - std::min<std::size_t>(broken.size(), 4096);
      const std::size_t at = i % 2 == 0 ? draw(64) : headers + draw(broken.size() - headers);
      if (at > 5 || turn % 50 == 0) broken[at] = static_cast<char>(broken[at] ^ (1 << draw(8)));
    }
    GuardedBytes guarded(broken);
    ElfFile elf = {};
    if (ReadElfFile(guarded.data(), guarded.size(), &elf) == 0) continue;
    const FoundEntries* found = FindEntries(&elf, &kPublic);
    EXPECT_LE(found->count, static_cast<std::size_t>(kMostEntries));
  }
}

TEST_F(AuditEntriesTest, BothWaysFindTheSameInEachRuntime) {
  const std::vector<std::string> archives = Archives();
  if (archives.empty()) GTEST_SKIP() << "there is no libcudart_static.a of a toolkit or of a wheel";
  for (const std::string& archive : archives) {
    SCOPED_TRACE(archive);
    const std::string library = Linked(archive);
    const Found by_symbols = FoundBy(EntriesBySymbols, BytesOf(library));
    ASSERT_EQ(Shell(absl::StrCat("strip ", library)).code, 0);
    const Found by_names = FoundBy(EntriesByNames, BytesOf(library));
    EXPECT_GT(by_symbols.addresses.size(), 300U);
    EXPECT_GT(by_names.addresses.size() + 40, by_symbols.addresses.size());
    EXPECT_THAT(Differing(by_names, by_symbols), IsEmpty());
    EXPECT_EQ(by_names.major, by_symbols.major);
    const int version = VersionOf(archive);
    EXPECT_EQ(by_symbols.major, version / 1000);
    std::printf("runtime %d: %zu functions by symbols, %zu by names: %s\n", version, by_symbols.addresses.size(),
                by_names.addresses.size(), archive.c_str());
  }
}

}  // namespace
}  // namespace ashlar
