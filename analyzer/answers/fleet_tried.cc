// The part of fleet.h that tries one setting in all ranks: their rows, replayed file by file, become those of a sweep.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "analyzer/answers/fleet.h"
#include "analyzer/remedies/settings_space.h"
#include "analyzer/remedies/sweep_rows.h"

namespace ashlar::answers {
namespace {

const RankRow* RowUnder(const RankSummary& summary, const std::string& conf) {
  for (std::size_t i = 1; i < summary.rows.size(); ++i) {
    if (summary.rows[i].conf == conf) return &summary.rows[i];
  }
  return nullptr;
}

class TriedTogether {
 public:
  explicit TriedTogether(const std::vector<FleetMember>& members) : members_(members) {
    for (Member member = 0; member < members.size(); ++member) {
      if (members[member].summary.has_value() && !members[member].summary->rows.empty()) out_.members.push_back(member);
    }
  }

  std::optional<FleetTried> Run() {
    if (out_.members.empty()) return std::nullopt;
    carried_ = Summary(0).carried;
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      if (Summary(i).carried != carried_) out_.carried_differ = true;
    }
    if (out_.carried_differ) carried_ = "";
    AddRecorded();
    for (const std::string& conf : Confs()) AddConf(conf);
    out_.result.is_search = false;
    out_.result.is_complete = true;
    remedies::FinishRows(carried_, out_.result);
    return std::move(out_);
  }

 private:
  const RankSummary& Summary(std::size_t i) const { return *members_[out_.members[i]].summary; }

  // Of all ranks, as the first one to know each has them.
  std::vector<std::string> Confs() const {
    std::vector<std::string> out;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      for (std::size_t row = 1; row < Summary(i).rows.size(); ++row) {
        const std::string& conf = Summary(i).rows[row].conf;
        if (seen.insert(conf).second) out.push_back(conf);
      }
    }
    return out;
  }

  void AddRecorded() {
    remedies::SweepRow row;
    row.is_baseline = true;
    row.conf = Summary(0).conf;
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      if (Summary(i).conf != row.conf) out_.result.recorded_confs_differ = true;
    }
    if (out_.result.recorded_confs_differ) row.conf = "";
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      remedies::AddTrace(Summary(i).rows.front().row, row);
      row.traces.back().conf = Summary(i).conf;
    }
    Keep(std::move(row));
  }

  // One that a rank's version does not know cannot serve all, and one that no rank decides otherwise under is no other.
  void AddConf(const std::string& conf) {
    remedies::SweepRow row;
    row.conf = remedies::JoinConfs(conf, carried_);
    bool is_other = false;
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      const RankRow* of_rank = RowUnder(Summary(i), conf);
      if (of_rank == nullptr) {
        out_.left_out.push_back(conf);
        return;
      }
      is_other = is_other || !of_rank->is_recorded;
      remedies::AddTrace(of_rank->row, row);
    }
    if (is_other) Keep(std::move(row));
  }

  void Keep(remedies::SweepRow row) {
    out_.result.replays += row.traces.size();
    out_.result.rows.push_back(std::move(row));
  }

  const std::vector<FleetMember>& members_;
  std::string carried_;
  FleetTried out_;
};

}  // namespace

std::optional<FleetTried> TryTogether(const std::vector<FleetMember>& members) { return TriedTogether(members).Run(); }

}  // namespace ashlar::answers
