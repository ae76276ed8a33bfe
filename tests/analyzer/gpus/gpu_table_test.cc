// The table of GPUs: names, limits, and the page of the documents that prints it.
#include "analyzer/gpus/gpu_table.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/expect_page.h"

namespace ashlar::gpus {
namespace {

using testing::HasSubstr;

TEST(GpuTable, NamesAreFoundHoweverTheyAreWritten) {
  for (const char* name : {"A100-80GB", "a100 80gb", "NVIDIA_A100-80GB", "Tesla A100-80GB"}) {
    ASSERT_TRUE(GpuNamed(name).ok()) << name << GpuNamed(name).status();
    EXPECT_EQ(GpuNamed(name)->name, "A100-80GB") << name;
  }
  EXPECT_EQ(GpuNamed("geforce rtx 4090")->name, "RTX4090");
  EXPECT_EQ(GpuNamed("p100")->name, "P100-16GB");  // there is one alone
}

TEST(GpuTable, AnUnknownNameAndOneOfTwoAreErrorsThatTellTheChoice) {
  EXPECT_THAT(std::string(GpuNamed("A100").status().message()),
              testing::EndsWith("'A100' is several cards: A100-40GB, A100-80GB"));
  EXPECT_THAT(std::string(GpuNamed("Voodoo2").status().message()), HasSubstr("RTX3090"));
  EXPECT_FALSE(GpuNamed("").ok());
}

TEST(GpuTable, CardsAreInOrderOfMemoryAndEachValueHasASource) {
  std::uint64_t before = 0;
  std::set<absl::string_view> names;
  for (const Gpu& gpu : Gpus()) {
    EXPECT_GE(gpu.total_bytes.value, before) << gpu.name;
    before = gpu.total_bytes.value;
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    for (const auto& [key, fact] : FactsOf(gpu)) {
      EXPECT_FALSE(fact.source.empty()) << gpu.name << " " << key;
      EXPECT_TRUE(fact.value > 0 || key == "compute_minor") << gpu.name << " " << key;
    }
  }
  for (const char* name : {"T4", "V100-16GB", "V100-32GB", "P100-16GB", "A10", "L4", "L40S", "A100-40GB", "A100-80GB",
                           "H100-80GB", "H200", "B200", "RTX3090", "RTX4090", "RTX5090"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

std::string Value(absl::string_view key, std::uint64_t value) {
  if (key == "total_bytes" || key == "context_bytes") return FormatBytes(value);
  return FormatCount(value);
}

std::string PageOfTheTable() {
  std::string out =
      "# GPUs\n\n"
      "`ashlar dry-run --device`, `ashlar estimate --device` and the table of cards take their values from this table. "
      "Where\n"
      "each is from stands in [the sources](../internals/gpu_sources.md).\n\n"
      "| card | memory | context | capability | multiprocessors | L2 |\n|---|---|---|---|---|---|\n";
  for (const Gpu& gpu : Gpus()) {
    const GpuFact context = ContextOf(gpu, ModuleLoading::kLazy);
    absl::StrAppend(&out, absl::StrFormat("| %s | %s | %s%s | %d.%d | %d | %s |\n", gpu.name,
                                          FormatBytes(gpu.total_bytes.value), FormatBytes(context.value),
                                          context.mark == Mark::kAssumed ? ", assumed" : "", gpu.compute_major,
                                          gpu.compute_minor, gpu.sm_count.value, FormatBytes(gpu.l2_bytes.value)));
  }
  absl::StrAppend(
      &out,
      "\nMemory is what `cudaMemGetInfo` gives as the total. The context is what one process's CUDA context takes "
      "of it,\nwith kernels loaded when they are first called, as PyTorch 1.13 and later do. Libraries choose a "
      "program's\nkernels by "
      "the capability: cards of one capability run it alike ([which card "
      "is\nenough](dry-run.md#which-card-is-enough)).\n\n## Keys\n\n"
      "A file for `--profile` has a line `key=value` for each value that is not the A100-80GB's. Sizes may be "
      "written\nas `16GiB`. The keys are those of the sources.\n");
  return out;
}

std::string PageOfTheSources() {
  std::string out =
      "# Where the values of GPUs are from\n\n"
      "Each value of the [table of GPUs](../guide/gpus.md) is marked: **measured** on such a card and posted, "
      "**published** by the vendor, or\n**assumed**.\n";
  for (const Gpu& gpu : Gpus()) {
    absl::StrAppend(&out, "\n## ", gpu.name, "\n\n`name=", gpu.driver_name,
                    "`\n\n| key | value | mark | source |\n|---|---|---|---|\n");
    for (const auto& [key, fact] : FactsOf(gpu)) {
      absl::StrAppend(&out, "| `", key, "` | ", Value(key, fact.value), " | ", MarkName(fact.mark), " | ", fact.source,
                      " |\n");
    }
  }
  return out;
}

TEST(GpuTable, ThePagesAreTheTable) {
  tests::ExpectPage("guide/gpus.md", PageOfTheTable());
  tests::ExpectPage("internals/gpu_sources.md", PageOfTheSources());
}

}  // namespace
}  // namespace ashlar::gpus
