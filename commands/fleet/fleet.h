// The answer of `ashlar fleet`: what the ranks of one job say together.
//
//   FleetAnswer answer = AnswerFleet(std::move(members));
//   answer.sentences;                  // what is wrong in this fleet, and on which ranks
//   answer.setting.advice.paste;       // the one setting that serves all
//
// It is a pure function of the ranks' summaries: however many processes made those, and in whichever order, the answer
// is the same. A member is named by its position in `members`, which are in the order of their ranks. Sizes are bytes.
#ifndef ASHLAR_COMMANDS_FLEET_FLEET_H_
#define ASHLAR_COMMANDS_FLEET_FLEET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/whatif/sweep.h"
#include "commands/fleet/fleet_rank.h"

namespace ashlar::answers {

using Member = std::size_t;
using Members = std::vector<Member>;

// One file. Either a summary or an error.
struct FleetMember {
  std::string path;
  std::uint64_t file_bytes = 0;
  std::uint64_t rank = 0;
  std::string name = {};  // "rank 37"; of several files of a rank with the file's own
  std::string error = {};
  std::optional<RankSummary> summary = {};
};

// What the files' times have in common.
enum class FleetClock : std::uint8_t {
  kCommon,  // one clock, and the windows overlap
  kOwn,     // the windows lie apart: each rank counts from its own beginning
  kEvents,  // not every file has times: each rank's window from its first event to its last
};

// Ranks of about the same peak of allocated memory: a stage of a pipeline.
struct FleetStage {
  Members members;
  std::uint64_t median_allocated_bytes = 0;
  std::uint64_t median_reserved_bytes = 0;
};

// A figure that lies apart from those of the same stage (of all ranks where there are no stages).
struct FleetOutlier {
  Member member = 0;
  std::string figure;  // "peak_allocated", "peak_reserved", "stranded"
  std::uint64_t bytes = 0;
  std::uint64_t median_bytes = 0;
  std::uint64_t spread_bytes = 0;    // 1.4826 times the median distance from the median
  std::optional<std::size_t> stage;  // it is compared with; nullopt: all ranks
};

struct FleetFailure {
  Member member = 0;
  std::optional<std::int64_t> after_us;  // since the fleet's beginning; by their own clock since the rank's own
};

// One cause in all ranks that have it.
struct FleetCause {
  std::string name;
  std::string sentence;
  Members members;   // ascending
  Members first_of;  // where it is the one to fix first
  Members failed;    // of those in `first_of`, where a request failed
  std::uint64_t median_bytes = 0;
  std::uint64_t most_bytes = 0;
  std::string line = {};         // of the program, that most of them name; empty: none
  std::size_t line_members = 0;  // that name it
};

// Ranks that grow alike, from the same line of the program.
struct FleetGrowth {
  Members members;
  std::uint64_t least_bytes_per_step = 0;
  std::uint64_t most_bytes_per_step = 0;
  std::string line = {};
};

// Ranks that ran under the same settings.
struct FleetSettings {
  std::string conf;
  std::string compat;
  std::optional<std::uint64_t> total_bytes;
  Members members;
};

// The settings tried, each in all ranks that have something to replay.
struct FleetTried {
  Members members;  // the traces of each row, in this order
  bool carried_differ = false;
  std::vector<std::string> left_out = {};  // settings that not every rank's version knows
  whatif::SweepResult result = {};
};

struct FleetHeat {
  std::int64_t begin_us = 0;  // of the axis; without times: 0
  std::int64_t end_us = 0;    // likewise; the greatest length of a window where each rank counts from its own beginning
  std::uint64_t full_bytes =
      0;  // what a share of 1,000 stands for: the greatest reserved, or the device where all are alike
  struct Row {
    Member member = 0;
    // In thousandths, rounded up; nullopt: outside the rank's window.
    std::vector<std::optional<std::uint16_t>> allocated;
    std::vector<std::optional<std::uint16_t>> reserved;
  };
  std::vector<Row> rows;
};

struct FleetAnswer {
  std::vector<FleetMember> members;
  std::string ranks_assumed;
  FleetClock clock = FleetClock::kEvents;
  std::vector<FleetFailure> failures;   // the first one first, or by rank
  bool failures_in_order = false;       // of time, by a common clock; else of rank
  std::vector<FleetStage> stages;       // by their lowest rank; empty: the ranks are of one kind
  std::vector<FleetOutlier> outliers;   // the farthest first
  std::vector<FleetCause> causes;       // of the failed first, then by ranks
  std::vector<FleetGrowth> growths;     // most a step first
  std::vector<FleetSettings> settings;  // the most ranks first; one: all are alike
  std::optional<FleetTried> tried;      // nullopt: nothing to replay
  Members broken;
  FleetHeat heat;
  std::vector<std::string> sentences;
  std::vector<std::string> notes;
};

// `paths` in any order; the answer's members are in the order of rank.
FleetAnswer AnswerFleet(std::vector<FleetMember> members, std::string ranks_assumed);

// The parts, each from the members alone (fleet_*.cc).
std::vector<FleetStage> FindStages(const std::vector<FleetMember>& members);
std::vector<FleetOutlier> FindOutliers(const std::vector<FleetMember>& members, const std::vector<FleetStage>& stages);
std::vector<FleetCause> GroupCauses(const std::vector<FleetMember>& members);
std::vector<FleetGrowth> GroupGrowths(const std::vector<FleetMember>& members);
std::vector<FleetSettings> GroupSettings(const std::vector<FleetMember>& members);
std::optional<FleetTried> TryTogether(const std::vector<FleetMember>& members);
FleetClock ClockOf(const std::vector<FleetMember>& members);
FleetHeat MakeHeat(const std::vector<FleetMember>& members, FleetClock clock);
// Once all other parts are there.
std::vector<std::string> SentencesOf(const FleetAnswer& answer);

// "ranks 0-127, 450", "rank 37".
std::string RanksOf(const std::vector<FleetMember>& members, const Members& of, std::size_t most = 6);

// A rank with several files counts once.
std::size_t CountRanks(const std::vector<FleetMember>& members, const Members& of);
// "1 rank", "4 ranks".
std::string CountedRanks(const std::vector<FleetMember>& members, const Members& of);

// Of values in any order; not of none.
std::uint64_t MedianOf(std::vector<std::uint64_t> values);

}  // namespace ashlar::answers

namespace ashlar::report {

// Prints the answer of `ashlar fleet` as text and JSON (docs/schemas/fleet.schema.json).

std::string ToText(const answers::FleetAnswer& answer);
std::string ToJson(const answers::FleetAnswer& answer);
std::string FleetSchema();  // docs/schemas/fleet.schema.json

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_FLEET_FLEET_H_
