#include "commands/fit/fit_sets.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace ashlar::answers {
namespace {

using Group = std::vector<const FitChange*>;  // one of them at most

bool ToldSomething(const FitAnswer& answer, const std::string& name) {
  for (const FitRow& row : answer.rows) {
    if (row.changes == std::vector<std::string>{name}) return row.why_not.empty();
  }
  return true;
}

// The table, by groups; a free change is a group of its own whose choice is made.
std::vector<Group> GroupsOf(const FitAnswer& answer, std::vector<const FitChange*>& always) {
  std::vector<Group> out;
  for (const FitChange& change : answer.changes) {
    if (!change.applies || !answer.IsAllowed(change) || !ToldSomething(answer, change.name)) continue;
    const bool is_taken = std::any_of(always.begin(), always.end(), [&](const FitChange* other) {
      return !change.group.empty() && other->group == change.group;
    });
    if (change.IsFree()) {
      if (!is_taken) always.push_back(&change);
      continue;
    }
    const auto group = std::find_if(out.begin(), out.end(), [&](const Group& of) {
      return !change.group.empty() && of.front()->group == change.group;
    });
    if (group != out.end()) {
      group->push_back(&change);
    } else {
      out.push_back({&change});
    }
  }
  return out;
}

// In the order of the table. One of a group takes the place of a free one of it.
FitSet SetOf(const FitAnswer& answer, const std::vector<const FitChange*>& always, const Group& chosen) {
  const auto is_in = [](const Group& changes, const FitChange& change) {
    return std::find(changes.begin(), changes.end(), &change) != changes.end();
  };
  FitSet out;
  for (const FitChange& change : answer.changes) {
    const bool is_replaced = std::any_of(chosen.begin(), chosen.end(), [&](const FitChange* other) {
      return !change.group.empty() && other->group == change.group && other != &change;
    });
    if (!is_in(chosen, change) && (!is_in(always, change) || is_replaced)) continue;
    out.changes.push_back(change.name);
    if (is_in(chosen, change)) out.priced.push_back(change.name);
    if (is_in(chosen, change)) out.price += answer.PriceOf(change);
    out.rough += change.price;
  }
  return out;
}

}  // namespace

std::vector<FitSet> SetsByPrice(const FitAnswer& answer) {
  std::vector<const FitChange*> always;
  std::vector<Group> chosen = {{}};
  for (const Group& group : GroupsOf(answer, always)) {
    const std::size_t before = chosen.size();
    for (std::size_t i = 0; i < before; ++i) {
      for (const FitChange* change : group) {
        Group with = chosen[i];
        with.push_back(change);
        chosen.push_back(std::move(with));
      }
    }
  }
  std::vector<FitSet> out;
  for (const Group& of : chosen) {
    FitSet set = SetOf(answer, always, of);
    if (!set.changes.empty()) out.push_back(std::move(set));
  }
  std::stable_sort(out.begin(), out.end(), [](const FitSet& a, const FitSet& b) {
    return std::tuple(a.price, a.rough, a.changes.size()) < std::tuple(b.price, b.rough, b.changes.size());
  });
  return out;
}

}  // namespace ashlar::answers
