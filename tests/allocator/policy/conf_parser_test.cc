// The grammar of PYTORCH_CUDA_ALLOC_CONF: every key in every version, what is refused, and that the message names the
// key, the value and what is allowed.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/policy/options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::policy {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Compat k113 = Compat::kTorch113;
constexpr Compat k26 = Compat::kTorch26;
constexpr Compat k210 = Compat::kTorch210;
constexpr Compat kLatest = Compat::kTorchLatest;
constexpr std::array<Compat, 4> kAll = {k113, k26, k210, kLatest};
constexpr std::array<Compat, 2> kLate = {k210, kLatest};

Options Good(const std::string& conf, Compat compat) {
  const absl::StatusOr<Options> options = ParseConf(conf, compat);
  EXPECT_TRUE(options.ok()) << conf << ": " << options.status();
  return options.ok() ? *options : Options{};
}

// The message of the error.
std::string Bad(const std::string& conf, Compat compat) {
  const absl::StatusOr<Options> options = ParseConf(conf, compat);
  EXPECT_FALSE(options.ok()) << conf << " in " << CompatName(compat);
  EXPECT_TRUE(absl::IsInvalidArgument(options.status()));
  return std::string(options.status().message());
}

using Divisions = std::array<std::uint64_t, 16>;
Divisions List(const std::string& list, Compat compat) {
  return Good("roundup_power2_divisions:" + list, compat).roundup_power2_divisions;
}

TEST(ConfParserTest, NothingSetIsTheDefault) {
  for (const Compat compat : kAll) {
    const Options options = Good("", compat);
    EXPECT_EQ(options.compat, compat);
    EXPECT_EQ(options.free_order, compat == kLatest ? FreeOrder::kPerSegmentCounter : FreeOrder::kAddress);
    EXPECT_EQ(options.max_split_size_bytes, kUnlimited);
    EXPECT_EQ(options.max_non_split_rounding_bytes, 20 * kMiB);
    EXPECT_EQ(options.large_segment_bytes, 20 * kMiB);
    EXPECT_EQ(options.garbage_collection_threshold, 0);
    EXPECT_FALSE(options.expandable_segments);
    EXPECT_FALSE(options.throw_on_cudamalloc_oom);
    EXPECT_FALSE(options.per_process_memory_fraction.has_value());
    EXPECT_THAT(options.notes, IsEmpty());
  }
}

TEST(ConfParserTest, SplitLimitsOfEachVersion) {
  for (const Compat compat : kAll) {
    EXPECT_EQ(Good("max_split_size_mb:21", compat).max_split_size_bytes, 21 * kMiB);
    EXPECT_THAT(Bad("max_split_size_mb:19", compat),
                AllOf(HasSubstr("max_split_size_mb"), HasSubstr("'19'"), HasSubstr("20")));
  }
  for (const Compat compat : {k113, k26}) EXPECT_THAT(Bad("max_split_size_mb:20", compat), HasSubstr("> 20"));
  for (const Compat compat : kLate) EXPECT_EQ(Good("max_split_size_mb:20", compat).max_split_size_bytes, 20 * kMiB);
}

TEST(ConfParserTest, NonSplitRoundingOfEachVersion) {
  EXPECT_THAT(Bad("max_non_split_rounding_mb:32", k113), HasSubstr("max_non_split_rounding_mb"));
  EXPECT_THAT(Bad("max_non_split_rounding_mb:20", k26), AllOf(HasSubstr("'20'"), HasSubstr("> 20")));
  EXPECT_EQ(Good("max_non_split_rounding_mb:21", k26).max_non_split_rounding_bytes, 21 * kMiB);
  for (const Compat compat : kLate) {
    EXPECT_EQ(Good("max_non_split_rounding_mb:20", compat).max_non_split_rounding_bytes, 20 * kMiB);
    EXPECT_THAT(Bad("max_non_split_rounding_mb:19", compat), HasSubstr(">= 20"));
  }
}

// What is wrong with a number: that it is none, or where it lies. PyTorch's own bounds: above 20 up to 2.6, from 2.10
// on at least the large segment.
TEST(ConfParserTest, ANumberThatIsTooSmallIsToldFromWhatIsNone) {
  struct Key {
    std::string name;
    Keys keys;
    Compat compat;
    std::vector<std::string> small;
    std::vector<std::string> large;
    std::string allowed;
  };
  const std::string huge = "99999999999999999999";
  const std::string at_least_20 = "use a whole number of MiB >= 20, the large_segment_size_mb in force";
  const std::vector<Key> keys = {
      {"max_split_size_mb", Keys::kTorch, k113, {"5", "20"}, {huge}, "use a whole number of MiB > 20"},
      {"max_split_size_mb", Keys::kTorch, k210, {"5", "19"}, {huge}, at_least_20},
      {"max_non_split_rounding_mb", Keys::kTorch, k26, {"20"}, {huge, "4294967296"}, "use a whole number of MiB > 20"},
      {"max_non_split_rounding_mb", Keys::kTorch, k210, {"19"}, {huge}, at_least_20},
      {"large_segment_size_mb", Keys::kTorch, k210, {"10", "0"}, {huge}, "use a whole number of MiB > 10"},
      {"roundup_bypass_threshold_mb", Keys::kTorch, k113, {}, {huge}, "use a whole number of MiB >= 0"},
      {"pinned_reserve_segment_size_mb", Keys::kTorch, k210, {"0"}, {huge}, "use a whole number of MiB > 0"},
      {"memory_limit_mb", Keys::kAshlar, k210, {"0", "-1"}, {huge}, "use a whole number of MiB > 0"},
      {"soft_limit_mb", Keys::kAshlar, k210, {"0"}, {huge}, "use a whole number of MiB > 0"},
      {"roundup_power2_divisions", Keys::kTorch, k210, {}, {huge}, "use a power of two"},
      {"garbage_collection_threshold",
       Keys::kTorch,
       k210,
       {"0", "-0.5"},
       {"1", "2", "inf"},
       "use a number between 0 and 1, both exclusive"},
      {"per_process_memory_fraction", Keys::kTorch, k210, {"-0.1"}, {"1.01"}, "use a number from 0 to 1"},
      {"soft_limit_fraction", Keys::kAshlar, k210, {"0"}, {"1.01"}, "use a number above 0, up to 1"},
  };
  for (const Key& key : keys) {
    const auto expect = [&key](const std::string& value, const std::string& problem) {
      const absl::Status status = ParseConf(key.name + ":" + value, key.compat, key.keys).status();
      EXPECT_EQ(status.message(), key.name + ": '" + value + "' " + problem + ": " + key.allowed);
    };
    for (const std::string& value : key.small) expect(value, "is too small");
    for (const std::string& value : key.large) expect(value, "is too large");
    for (const char* value : {"banana", "nan", "--5"}) expect(value, "is no number");
  }
  const auto ours = [](const std::string& conf) {
    return std::string(ParseConf(conf, k210, Keys::kAshlar).status().message());
  };
  EXPECT_EQ(ours("memory_limit_mb:20.5"), "memory_limit_mb: '20.5' is no whole number: use a whole number of MiB > 0");
  EXPECT_EQ(ours("memory_limit_mb:5MiB"), "memory_limit_mb: '5MiB' is no number: use a whole number of MiB > 0");
  EXPECT_THAT(Bad("garbage_collection_threshold:1e-400", k210), HasSubstr("is beyond the numbers of double precision"));
  EXPECT_THAT(Bad("roundup_power2_divisions:12", k210), HasSubstr("'12' is no power of two: use a power of two"));
  EXPECT_THAT(Bad("roundup_power2_divisions:[4:x]", k210), HasSubstr("is not allowed, 'x' is no number: use ["));
  EXPECT_THAT(Bad("roundup_power2_divisions:[3:2]", k210), HasSubstr("is not allowed, '3' is no power of two: use"));
  EXPECT_THAT(Bad("roundup_power2_divisions:[4]", k210), HasSubstr("is not allowed, '4' is no size:divisions: use"));
  const auto note = [](const char* value) {
    return Good(std::string("expandable_segments_reserve:") + value, kLatest).notes.at(0);
  };
  EXPECT_EQ(note("lots"), "expandable_segments_reserve: 'lots' is no number and is ignored");
  EXPECT_EQ(note("-1G"), "expandable_segments_reserve: '-1G' is too small and is ignored");
}

TEST(ConfParserTest, LargeSegmentIsReadFirst) {
  for (const Compat compat : kLate) {
    const Options options = Good("max_split_size_mb:12,large_segment_size_mb:12", compat);
    EXPECT_EQ(options.large_segment_bytes, 12 * kMiB);
    EXPECT_EQ(options.max_split_size_bytes, 12 * kMiB);
    EXPECT_EQ(options.max_non_split_rounding_bytes, 12 * kMiB) << "follows the large segment";
    EXPECT_EQ(Good("max_non_split_rounding_mb:70,large_segment_size_mb:64", compat).max_non_split_rounding_bytes,
              70 * kMiB);
    EXPECT_THAT(Bad("max_split_size_mb:32,large_segment_size_mb:64", compat),
                AllOf(HasSubstr("'32'"), HasSubstr(">= 64")));
    EXPECT_EQ(Good("large_segment_size_mb:11", compat).large_segment_bytes, 11 * kMiB);
    for (const char* value : {"10", "10.9", "0", "x"}) {
      EXPECT_THAT(Bad(std::string("large_segment_size_mb:") + value, compat),
                  AllOf(HasSubstr("large_segment_size_mb"), HasSubstr(value), HasSubstr("> 10")));
    }
  }
  for (const Compat compat : {k113, k26}) Bad("large_segment_size_mb:32", compat);
}

TEST(ConfParserTest, GarbageCollectionThreshold) {
  for (const Compat compat : kAll) {
    EXPECT_DOUBLE_EQ(Good("garbage_collection_threshold:0.6", compat).garbage_collection_threshold, 0.6);
    for (const char* value : {"0", "1", "0.0", "1.0", "-0.5", "2", "nan", "x"}) {
      EXPECT_THAT(Bad(std::string("garbage_collection_threshold:") + value, compat),
                  AllOf(HasSubstr("garbage_collection_threshold"), HasSubstr(value), HasSubstr("between 0 and 1")));
    }
  }
}

TEST(ConfParserTest, FlagsAreTrueOrFalseExactly) {
  for (const Compat compat : {k26, k210, kLatest}) {
    EXPECT_TRUE(Good("expandable_segments:True", compat).expandable_segments);
    EXPECT_FALSE(Good("expandable_segments:False", compat).expandable_segments);
    for (const char* value : {"true", "1", "TRUE", "Yes"}) {
      EXPECT_THAT(Bad(std::string("expandable_segments:") + value, compat),
                  AllOf(HasSubstr("expandable_segments"), HasSubstr(value), HasSubstr("True or False")));
    }
  }
  Bad("expandable_segments:True", k113);
  for (const Compat compat : kLate) {
    EXPECT_TRUE(Good("throw_on_cudamalloc_oom:True", compat).throw_on_cudamalloc_oom);
    EXPECT_THAT(Bad("throw_on_cudamalloc_oom:yes", compat), HasSubstr("True or False"));
  }
  for (const Compat compat : {k113, k26}) Bad("throw_on_cudamalloc_oom:True", compat);
}

TEST(ConfParserTest, MemoryFraction) {
  for (const Compat compat : kLate) {
    EXPECT_DOUBLE_EQ(*Good("per_process_memory_fraction:0.25", compat).per_process_memory_fraction, 0.25);
    EXPECT_DOUBLE_EQ(*Good("per_process_memory_fraction:0", compat).per_process_memory_fraction, 0);
    EXPECT_DOUBLE_EQ(*Good("per_process_memory_fraction:1.0", compat).per_process_memory_fraction, 1);
    for (const char* value : {"-0.1", "1.01", "half"}) {
      EXPECT_THAT(Bad(std::string("per_process_memory_fraction:") + value, compat),
                  AllOf(HasSubstr("per_process_memory_fraction"), HasSubstr(value), HasSubstr("0 to 1")));
    }
  }
  for (const Compat compat : {k113, k26}) Bad("per_process_memory_fraction:0.5", compat);
}

TEST(ConfParserTest, ExpandableReserve) {
  EXPECT_EQ(*ParseConf("expandable_segments_reserve:64G", k210, Keys::kAshlar)->expandable_reserve.bytes, 64 * kGiB);
  for (const Compat compat : {kLatest}) {
    EXPECT_DOUBLE_EQ(*Good("expandable_segments_reserve:0.5", compat).expandable_reserve.fraction_of_total, 0.5);
    EXPECT_EQ(*Good("expandable_segments_reserve:64G", compat).expandable_reserve.bytes, 64 * kGiB);
    EXPECT_EQ(*Good("expandable_segments_reserve:64g", compat).expandable_reserve.bytes, 64 * kGiB);
    for (const char* value : {"0", "-1", "lots", "G"}) {
      const Options ignored = Good(std::string("expandable_segments_reserve:") + value, compat);
      EXPECT_FALSE(ignored.expandable_reserve.bytes || ignored.expandable_reserve.fraction_of_total) << value;
      EXPECT_THAT(ignored.notes, SizeIs(1)) << "ignored values are named";
    }
  }
  for (const Compat compat : {k113, k26, k210}) Bad("expandable_segments_reserve:0.5", compat);
}

TEST(ConfParserTest, RoundupScalar) {
  for (const Compat compat : kAll) {
    Divisions expected;
    expected.fill(8);
    EXPECT_THAT(Good("roundup_power2_divisions:8", compat).roundup_power2_divisions, ElementsAreArray(expected));
    for (const char* value : {"0", "3", "x"}) {
      EXPECT_THAT(Bad(std::string("roundup_power2_divisions:") + value, compat),
                  AllOf(HasSubstr("roundup_power2_divisions"), HasSubstr(value), HasSubstr("power of two")));
    }
  }
}

TEST(ConfParserTest, RoundupBypassIsOf113) {
  EXPECT_EQ(Good("roundup_bypass_threshold_mb:8", k113).roundup_bypass_threshold_bytes, 8 * kMiB);
  for (const Compat compat : {k26, k210, kLatest}) Bad("roundup_bypass_threshold_mb:8", compat);
}

TEST(ConfParserTest, AListIsAnErrorIn113) {
  EXPECT_THAT(Bad("roundup_power2_divisions:[1:8]", k113), HasSubstr("roundup_power2_divisions"));
}

TEST(ConfParserTest, TheFirstKeyFillsBelowAndUnnamedIntervalsAreOff) {
  for (const Compat compat : {k26, k210, kLatest}) {
    EXPECT_EQ(List("[4:2,32:8]", compat), (Divisions{2, 2, 2, 0, 0, 8}));
    EXPECT_EQ(List("[1:4]", compat), (Divisions{4}));
    EXPECT_EQ(List("[4:2,1:8]", compat), (Divisions{8, 2, 2})) << "only the first fills";
    EXPECT_EQ(List("[4:2,4:8]", compat), (Divisions{2, 2, 8})) << "a later key wins";
    EXPECT_EQ(List("[4:0,8:2]", compat), (Divisions{0, 0, 0, 2})) << "0 in a list is off";
  }
}

TEST(ConfParserTest, TheRestOfAList) {
  Divisions expected = {8, 0, 4};
  for (std::size_t i = 3; i < 16; ++i) expected[i] = 2;
  for (const Compat compat : kLate) EXPECT_EQ(List("[1:8,4:4,>:2]", compat), expected);
  expected[2] = 2;  // in 2.6 the last named interval takes the value of the rest too
  EXPECT_EQ(List("[1:8,4:4,>:2]", k26), expected);

  Divisions from_256{};
  for (std::size_t i = 0; i <= 8; ++i) from_256[i] = 1;
  from_256[9] = 2;
  for (std::size_t i = 10; i < 16; ++i) from_256[i] = 8;
  EXPECT_EQ(List("[256:1,512:2,1024:4,>:8]", k26), from_256);
  from_256[10] = 4;
  EXPECT_EQ(List("[256:1,512:2,1024:4,>:8]", kLatest), from_256);
}

TEST(ConfParserTest, TheRestAlone) {
  Divisions expected;
  expected.fill(4);
  EXPECT_EQ(List("[>:4]", k26), expected);
  expected[0] = 0;
  EXPECT_EQ(List("[>:4]", kLatest), expected) << "the first interval stays off";
}

TEST(ConfParserTest, TheLastIntervalHasNothingAbove) {
  for (const char* key : {"32768", "65536", "131072"}) {
    Divisions expected;
    expected.fill(2);
    EXPECT_EQ(List(std::string("[") + key + ":2,>:8]", kLatest), expected) << key;
  }
}

TEST(ConfParserTest, BadLists) {
  for (const char* list : {"[3:2]", "[4:3]", "[4]", "[4:2:1]", "[x:2]", "[4:x]", "[-4:2]", "[>:3]", "[0:2]"}) {
    EXPECT_THAT(Bad(std::string("roundup_power2_divisions:") + list, kLatest),
                AllOf(HasSubstr("roundup_power2_divisions"), HasSubstr(list), HasSubstr("powers of two")));
  }
  Bad("roundup_power2_divisions:[4:2", kLatest);
  Bad("roundup_power2_divisions:4:2]", kLatest);
}

TEST(ConfParserTest, BlanksAndATrailingCommaAreFine) {
  for (const Compat compat : kAll) {
    const Options options = Good(" max_split_size_mb : 64 , garbage_collection_threshold: 0.8,", compat);
    EXPECT_EQ(options.max_split_size_bytes, 64 * kMiB);
    EXPECT_DOUBLE_EQ(options.garbage_collection_threshold, 0.8);
  }
  EXPECT_EQ(List("[ 4 : 2 , 32 : 8 ]", kLatest), (Divisions{2, 2, 2, 0, 0, 8}));
}

TEST(ConfParserTest, TheOrderOfKeysDoesNotMatter) {
  const char* orders[] = {"large_segment_size_mb:32,max_split_size_mb:64,garbage_collection_threshold:0.7",
                          "garbage_collection_threshold:0.7,max_split_size_mb:64,large_segment_size_mb:32",
                          "max_split_size_mb:64,large_segment_size_mb:32,garbage_collection_threshold:0.7"};
  for (const char* conf : orders) {
    const Options options = Good(conf, kLatest);
    EXPECT_EQ(options.large_segment_bytes, 32 * kMiB);
    EXPECT_EQ(options.max_split_size_bytes, 64 * kMiB);
    EXPECT_EQ(options.max_non_split_rounding_bytes, 32 * kMiB);
    EXPECT_DOUBLE_EQ(options.garbage_collection_threshold, 0.7);
  }
}

TEST(ConfParserTest, UnknownKeysAndBrokenPairs) {
  for (const Compat compat : kAll) {
    for (const char* conf : {",", ",,", ",max_split_size_mb:64", "max_split_size_mb:64,,"}) Bad(conf, compat);
    EXPECT_THAT(Bad("no_such_key:1", compat),
                AllOf(HasSubstr("no_such_key"), HasSubstr("'1'"), HasSubstr(std::string(CompatName(compat)))));
    for (const char* conf : {"max_split_size_mb", "max_split_size_mb:", "garbage_collection_threshold"}) {
      EXPECT_THAT(Bad(conf, compat), AllOf(HasSubstr(conf), HasSubstr("key:value")));
    }
  }
}

TEST(ConfParserTest, KeysWithoutEffectAreNotedAndTheirValuesChecked) {
  for (const Compat compat : {k26, k210, kLatest}) {
    EXPECT_THAT(Good("release_lock_on_cudamalloc:True", compat).notes,
                testing::ElementsAre(HasSubstr("release_lock_on_cudamalloc")));
  }
  EXPECT_THAT(Good("backend:native", kLatest).notes, IsEmpty());
  EXPECT_THAT(Bad("backend:cudaMallocAsync", kLatest), HasSubstr("native"));
}

// The run is over: what is not understood is left out and named, and the rest counts.
TEST(ConfParserTest, ARecordIsNeverRefused) {
  const Options options =
      ReadRecordedConf("max_split_size_mb:64,some_future_key:1,garbage_collection_threshold:0.8,x", k210);
  EXPECT_EQ(options.max_split_size_bytes, 64 * kMiB);
  EXPECT_DOUBLE_EQ(options.garbage_collection_threshold, 0.8);
  EXPECT_EQ(options.conf, "max_split_size_mb:64,garbage_collection_threshold:0.8");
  EXPECT_THAT(options.notes, testing::UnorderedElementsAre(HasSubstr("'some_future_key' is no setting of torch-2.10"),
                                                           HasSubstr("'x' in 'max_split_size_mb:64")));
  EXPECT_EQ(ReadRecordedConf("compat:torch-9,max_split_size_mb:64", kLatest).compat, kLatest);
  EXPECT_EQ(ReadRecordedConf("compat:torch-2.6", kLatest).compat, k26);
  EXPECT_THAT(ReadRecordedConf("plan:/no/such/file", k210).notes, SizeIs(1));
  EXPECT_EQ(ReadRecordedConf(" max_split_size_mb : 64 ,", k210).conf, " max_split_size_mb : 64 ,") << "as it was";
  EXPECT_EQ(ReadRecordedConf("roundup_power2_divisions:[4:2,8:x]", k210).roundup_power2_divisions, Divisions{})
      << "half a list is no list";
}

TEST(ConfParserTest, NamesOfVersionsAndOrdersRoundTrip) {
  for (const Compat compat : kAll) EXPECT_EQ(*ParseCompat(CompatName(compat)), compat);
  for (const FreeOrder order : {FreeOrder::kAddress, FreeOrder::kPerBlockCounter, FreeOrder::kPerSegmentCounter}) {
    EXPECT_EQ(*ParseFreeOrder(FreeOrderName(order)), order);
  }
  EXPECT_THAT(std::string(ParseCompat("torch-9").status().message()),
              AllOf(HasSubstr("torch-9"), HasSubstr("torch-2.6")));
}

TEST(TorchRulesTest, ARowBeginsWhereTheLastOneEnds) {
  const absl::Span<const TorchRules> rules = AllTorchRules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    EXPECT_EQ(&RulesOf(rules[i].compat), &rules[i]) << "one row for each";
    EXPECT_EQ(&RulesOfRelease(rules[i].since), &rules[i]);
    if (i == 0) continue;
    EXPECT_LT(rules[i - 1].since, rules[i].since);
    EXPECT_LT(rules[i - 1].compat, rules[i].compat);
    const Release before = {rules[i].since.first, rules[i].since.second - 1};
    EXPECT_EQ(&RulesOfRelease(before), &rules[i - 1]);
  }
  EXPECT_EQ(&RulesOfRelease({99, 0}), &rules.back()) << "what nobody has looked at yet";
}

TEST(TorchRulesTest, AReleaseIsANameOfItsRules) {
  EXPECT_EQ(*ParseCompat("torch-2.6"), Compat::kTorch26);
  EXPECT_EQ(*ParseCompat("torch-2.9"), Compat::kTorch26);
  EXPECT_EQ(*ParseCompat("torch-2.11"), Compat::kTorch210);
  EXPECT_EQ(*ParseCompat("torch-2.14"), Compat::kTorchLatest);
  for (const char* wrong : {"2.14", "torch-", "torch-2", "torch-2.x", "torch-2.14.1", "torch--1.2", "torch-99.0"}) {
    EXPECT_FALSE(ParseCompat(wrong).ok()) << wrong;
  }
}

TEST(TorchRulesTest, IntelsAllocatorHasOneSetting) {
  EXPECT_EQ(*ParseCompat("torch-xpu"), Compat::kTorchXpu);
  EXPECT_EQ(CompatName(Compat::kTorchXpu), "torch-xpu");
  EXPECT_TRUE(ParseConf("expandable_segments:True", Compat::kTorchXpu)->expandable_segments);
  for (const char* other : {"max_split_size_mb:128", "garbage_collection_threshold:0.8", "policy:ashlar"}) {
    EXPECT_FALSE(ParseConf(other, Compat::kTorchXpu, Keys::kAshlar).ok()) << other;
  }
}

TEST(ConfParserTest, NoOrderIsRandom) { EXPECT_FALSE(ParseFreeOrder("random").ok()); }

TEST(ConfParserTest, OurPolicyMapsPagesAndSplitsEverything) {
  const Options options = *ParseConf("policy:ashlar,max_split_size_mb:128", Compat::kTorch210, Keys::kAshlar);
  EXPECT_EQ(options.policy, Policy::kAshlar);
  EXPECT_TRUE(options.expandable_segments);
  EXPECT_EQ(options.max_split_size_bytes, kUnlimited);
  ASSERT_EQ(options.notes.size(), 1u);
  EXPECT_THAT(options.notes[0], testing::HasSubstr("max_split_size_mb"));
  EXPECT_EQ(ParseConf("policy:torch", Compat::kTorch210, Keys::kAshlar)->policy, Policy::kTorch);
  EXPECT_FALSE(ParseConf("policy:best", Compat::kTorch210, Keys::kAshlar).ok());
  EXPECT_FALSE(ParseConf("policy:ashlar", Compat::kTorch210, Keys::kTorch).ok());
}

TEST(ConfParserTest, OurPolicyTakesTheLowestOfEqualBlocksWhateverTheVersion) {
  for (const Compat compat : kAll) {
    const Options options = *ParseConf("policy:ashlar", compat, Keys::kAshlar);
    EXPECT_EQ(options.free_order, FreeOrder::kAddress);
    const std::string asked = "free_order:per-block-counter";
    for (const std::string& conf : {asked + ",policy:ashlar", "policy:ashlar," + asked}) {
      EXPECT_EQ(ParseConf(conf, compat, Keys::kAshlar)->free_order, FreeOrder::kPerBlockCounter);
    }
    Options of_run = Good("", compat);
    of_run.free_order = FreeOrder::kPerBlockCounter;
    Options ours = options;
    KeepFreeOrder(of_run, ours);
    EXPECT_EQ(ours.free_order, FreeOrder::kAddress) << "a recorded run under PyTorch's policy";
    Options other = Good("max_split_size_mb:128", compat);
    KeepFreeOrder(of_run, other);
    EXPECT_EQ(other.free_order, FreeOrder::kPerBlockCounter);
  }
}

}  // namespace
}  // namespace ashlar::policy
