#include "estimator/report/lever_fields.h"

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::report {
namespace {

std::vector<absl::string_view> NamesOfLevers(const estimate::LeverSet& set) {
  std::vector<absl::string_view> out;
  for (const estimate::Lever* lever : set.levers) out.push_back(lever->change.name);
  return out;
}

}  // namespace

template <>
const Fields<estimate::LeverRow>& FieldsOf<estimate::LeverRow>() {
  using Row = estimate::LeverRow;
  static const auto* fields = new Fields<Row>(
      Fields<Row>("lever_row")
          .Add(
              "lever", [](const auto& row) { return row.lever->change.name; }, "Its name.")
          .Add("flags", &Row::flags, "The flags that do the same.")
          .Add(
              "costs", [](const auto& row) { return row.lever->change.costs; }, "What it costs.")
          .AddCount(
              "price",
              [](const auto& row) {
                const int price = row.lever->change.price;
                return price > 0 ? std::optional(price) : std::nullopt;
              },
              "That --fit adds up; null: another training, never taken.")
          .Add("saved_bytes", &Row::saved_bytes, "Below 0 it takes more.")
          .Add(
              "device_bytes", [](const auto& row) { return row.measured.device_bytes; },
              "With it, the higher of both orders of addresses.")
          .Add("fits", [](const auto& row) { return row.measured.fits; }, "In both orders; null: no capacity."));
  return *fields;
}

template <>
const Fields<estimate::LeverSkipped>& FieldsOf<estimate::LeverSkipped>() {
  using Skipped = estimate::LeverSkipped;
  static const auto* fields =
      new Fields<Skipped>(Fields<Skipped>("lever_skipped")
                              .Add(
                                  "lever", [](const auto& of) { return of.lever->change.name; }, "Its name.")
                              .Add("why", &Skipped::why, "One line."));
  return *fields;
}

template <>
const Fields<estimate::LeverResult>& FieldsOf<estimate::LeverResult>() {
  using Result = estimate::LeverResult;
  static const auto* fields = new Fields<Result>(
      Fields<Result>("levers")
          .Add(
              "device_bytes", [](const auto& of) { return of.asked.device_bytes; },
              "On the device without any, in memory without end.")
          .Add(
              "fits", [](const auto& of) { return of.asked.fits; }, "Whether it fits without any; null: no capacity.")
          .Add("rows", &Result::rows, "Most saved first.")
          .Add("skipped", &Result::skipped, "Levers that this run does not have."));
  return *fields;
}

template <>
const Fields<estimate::LargestBatch>& FieldsOf<estimate::LargestBatch>() {
  using Batch = estimate::LargestBatch;
  static const auto* fields = new Fields<Batch>(
      Fields<Batch>("largest_batch")
          .AddCount("batch", &Batch::batch, "0: not even 1 fits.")
          .Add("device_bytes", &Batch::device_bytes, "Of it; 0 without.")
          .Add("tried", &Batch::tried, "Batches that were run.")
          .Add("is_bounded", &Batch::is_bounded, "false: the largest that is tried fits.")
          .AddCount("exceptions", &Batch::exceptions, "Smaller ones that fail and larger ones that fit."));
  return *fields;
}

template <>
const Fields<estimate::LeverSet>& FieldsOf<estimate::LeverSet>() {
  using Set = estimate::LeverSet;
  static const auto* fields = new Fields<Set>(
      Fields<Set>("lever_set")
          .Add("levers", &NamesOfLevers, "By name.")
          .Add("flags", &Set::flags, "Of each; those of a later one replace the same flag of an earlier one.")
          .AddCount("price", &Set::price, "The sum.")
          .Add(
              "device_bytes", [](const auto& of) { return of.measured.device_bytes; },
              "With all of them, in memory without end."));
  return *fields;
}

template <>
const Fields<estimate::Fit>& FieldsOf<estimate::Fit>() {
  using estimate::Fit;
  static const auto* fields = new Fields<Fit>(
      Fields<Fit>("fit")
          .Add("capacity_bytes", &Fit::capacity_bytes, "Of the whole device.")
          .Add(
              "fits", [](const auto& of) { return of.asked.fits == true; }, "As asked, in both orders of addresses.")
          .Add(
              "device_bytes", [](const auto& of) { return of.asked.device_bytes; }, "As asked, in memory without end.")
          .Add("largest_batch", &Fit::largest, "As asked.")
          .Add("cheapest", &Fit::cheapest, "The lowest price that fits; null where it fits as asked, or none does.")
          .Add("largest_batch_of_cheapest", &Fit::largest_cheapest, "With those levers.")
          .Add("least", &Fit::least, "Where none fits, the one that needs least.")
          .Add("sets_tried", &Fit::sets_tried, "Sets of levers that were run."));
  return *fields;
}

}  // namespace ashlar::report
