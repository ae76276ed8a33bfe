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

TEST(GpuTable, OfSomeCardsTheMemoryAloneIsKnown) {
  for (const char* name : {"MI300X", "AMD Instinct MI300X", "mi300x"}) {
    ASSERT_NE(OtherCardNamed(name), nullptr) << name;
    EXPECT_EQ(FormatBytes(OtherCardNamed(name)->total_bytes.value), "191.98 GiB");
    EXPECT_EQ(std::string(GpuNamed(name).status().message()),
              absl::StrCat("of '", name, "' the memory alone is known: give --capacity 191.98GiB"));
  }
  EXPECT_EQ(OtherCardNamed("L4"), nullptr);
  for (const CardMemory& card : OtherCards()) EXPECT_FALSE(card.total_bytes.source.empty()) << card.name;
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

// Totals that systems of such machines print, and those of the cards nearby.
TEST(GpuTable, ACardWithUnifiedMemoryIsToldByItsSize) {
  for (const double gib : {119.64, 121.69, 124.5}) {
    const Gpu* const gpu = UnifiedMemoryGpu(static_cast<std::uint64_t>(gib * (1 << 30)));
    ASSERT_NE(gpu, nullptr) << gib;
    EXPECT_EQ(gpu->name, "GB10");
  }
  for (const double gib : {0.0, 22.05, 79.25, 93.1, 95.0, 110.0, 128.0, 139.8, 1000.0}) {
    EXPECT_EQ(UnifiedMemoryGpu(static_cast<std::uint64_t>(gib * (1 << 30))), nullptr) << gib;
  }
}

// Of the data sheets, dense: where a card is sold with a lower clock for tensor cores than its greatest, ours is above.
TEST(GpuTable, SpeedsAreThoseOfTheDataSheets) {
  const struct {
    const char* name;
    double tera32, tera16, giga_bytes;
  } sheets[] = {{"P100-16GB", 9.3, 18.7, 732},  {"V100-16GB", 15.7, 125, 900},   {"T4", 8.1, 65, 320},
                {"A100-80GB", 19.5, 312, 2039}, {"A10", 31.2, 125, 600},         {"A40", 37.4, 149.7, 696},
                {"L4", 30.3, 121, 300},         {"L40S", 91.6, 362, 864},        {"RTX3090", 35.6, 71, 936},
                {"RTX4090", 82.6, 165.2, 1008}, {"RTX5090", 104.8, 209.5, 1792}, {"H100-80GB", 67, 989, 3350},
                {"H200", 67, 989, 4800},        {"B200", 75, 2250, 8000},        {"GB10", 31, 125, 273}};
  for (const auto& sheet : sheets) {
    const GpuSpeed speed = SpeedOf(*GpuNamed(sheet.name));
    const auto expect_near = [&](const GpuFact& fact, double published) {
      const double ratio = static_cast<double>(fact.value) / published;
      EXPECT_TRUE(ratio > 0.93 && ratio < 1.15) << sheet.name << " " << fact.value << " " << published;
    };
    expect_near(speed.operations, sheet.tera32 * 1e12);
    expect_near(speed.narrow_operations, sheet.tera16 * 1e12);
    expect_near(speed.memory_bytes, sheet.giga_bytes * 1e9);
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
      "is\nenough](dry-run.md#which-card-is-enough)).\n\n## Of which the memory alone is known\n\n"
      "`--capacity` of `explain` and its like takes these names too. No program of CUDA runs on such a card.\n\n"
      "| card | memory | source |\n|---|---|---|\n");
  for (const CardMemory& card : OtherCards()) {
    absl::StrAppend(&out, "| ", card.name, " | ", FormatBytes(card.total_bytes.value), " | ", card.total_bytes.source,
                    " |\n");
  }
  absl::StrAppend(
      &out,
      "\n## Keys\n\n"
      "A file for `--profile` has a line `key=value` for each value that is not the A100-80GB's. Sizes may be "
      "written\nas `16GiB`. The keys are those of the sources.\n");
  return out;
}

constexpr char kSpeeds[] =
    "\n## Speeds\n\n"
    "Worked out of the values above, and so assumed: `sm_count` x `clock_khz` x the operations of a multiprocessor in "
    "a "
    "clock, which go by\nthe capability (CUDA C++ Programming Guide, Arithmetic Instructions; of 16 bits NVIDIA's "
    "white "
    "papers of the architectures), and\n`memory_clock_khz` x `memory_bus_bits` x 2 transfers in a clock, of the GB10's "
    "LPDDR5X one. GeForce cards add products of 16 bits\nup in 32 at half of the rate. A test holds them to 15 of "
    "NVIDIA's data sheets: from 7 % below to 15 % above, as the sheets of some\ncards count with a lower clock.\n\n"
    "| card | TFLOP/s, 32 bits | TFLOP/s, products of 16 bits | memory, GB/s |\n|---|---|---|---|\n";

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
  absl::StrAppend(&out, kSpeeds);
  for (const Gpu& gpu : Gpus()) {
    const GpuSpeed speed = SpeedOf(gpu);
    absl::StrAppend(&out, absl::StrFormat("| %s | %.1f | %.1f | %.0f |\n", gpu.name,
                                          static_cast<double>(speed.operations.value) / 1e12,
                                          static_cast<double>(speed.narrow_operations.value) / 1e12,
                                          static_cast<double>(speed.memory_bytes.value) / 1e9));
  }
  return out;
}

TEST(GpuTable, ThePagesAreTheTable) {
  tests::ExpectPage("guide/gpus.md", PageOfTheTable());
  tests::ExpectPage("internals/gpu_sources.md", PageOfTheSources());
}

}  // namespace
}  // namespace ashlar::gpus
