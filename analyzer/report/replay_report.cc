#include "analyzer/report/replay_report.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {
namespace {

std::string PeakLine(const char* name, const core::PoolStat& stat) {
  return absl::StrFormat("  %-15s %11s   (%d bytes)\n", name, FormatBytes(static_cast<std::uint64_t>(stat.all().peak)),
                         stat.all().peak);
}

std::string FidelityText(const replay::Fidelity& f) {
  std::string out =
      absl::StrFormat("fidelity\n  addresses       %s of %s\n  segments        %s of %s\n", FormatCount(f.matched),
                      FormatCount(f.total), FormatCount(f.segments_matched), FormatCount(f.segments_total));
  absl::StrAppend(&out, "  final state     ",
                  f.final_state_matches ? "equal" : absl::StrCat("differs: ", f.final_state_difference), "\n");
  absl::StrAppend(&out, "  taken from the record: ", FormatCount(f.segment_addresses_used), " segment addresses, ",
                  FormatCount(f.tails_inferred), " unsplit rests\n");
  if (f.first_mismatch.has_value()) {
    out += absl::StrFormat("  first miss      event %d: recorded at %#x, replayed at %#x\n", f.first_mismatch->event,
                           f.first_mismatch->recorded_address, f.first_mismatch->replayed_address);
  }
  return out;
}

}  // namespace

std::string ToText(const answers::ReplayAnswer& r) {
  std::string out = absl::StrCat(r.source, "\n", "as ", r.compat, ", ", r.free_order, " order, conf '", r.conf, "', ");
  absl::StrAppend(&out,
                  r.capacity_bytes.has_value() ? absl::StrCat("capacity ", FormatBytes(*r.capacity_bytes))
                                               : std::string("capacity not limited"),
                  "\npeaks\n");
  out += PeakLine("reserved", r.stats.reserved_bytes) + PeakLine("allocated", r.stats.allocated_bytes) +
         PeakLine("active", r.stats.active_bytes) + PeakLine("requested", r.stats.requested_bytes);
  if (r.recorded_peak_reserved_bytes.has_value()) {
    absl::StrAppend(&out, "  in the record   ", FormatBytes(*r.recorded_peak_reserved_bytes), " reserved\n");
  }
  absl::StrAppend(&out, "out of memory   ", FormatCount(r.stats.num_ooms), " (", FormatCount(r.stats.num_alloc_retries),
                  " retries, ", FormatCount(r.stats.num_oom_rejections), " rejections)\n");
  absl::StrAppend(&out, "device calls    ", FormatCount(r.calls.segment_alloc), " cudaMalloc, ",
                  FormatCount(r.calls.segment_free), " cudaFree, ", FormatCount(r.calls.map_pages), " cuMemMap, ",
                  FormatCount(r.calls.unmap_pages), " cuMemUnmap");
  if (r.cost_ns.has_value()) out += absl::StrFormat(", about %.1f ms", static_cast<double>(*r.cost_ns) / 1e6);
  out += "\n";
  if (r.fidelity.has_value()) out += FidelityText(*r.fidelity);
  for (const trace::Note& note : r.notes) {
    absl::StrAppend(&out, "note: ", note.message,
                    note.count > 1 ? absl::StrCat(" (", FormatCount(note.count), ")") : "", "\n");
  }
  for (char& c : out) {  // what a file names may hold anything
    if (c != '\n' && absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return out;
}

std::string ToJson(const answers::ReplayAnswer& r) {
  Json out = {{"source", r.source},
              {"compat", r.compat},
              {"free_order", r.free_order},
              {"conf", r.conf},
              {"capacity", OrNull(r.capacity_bytes)},
              {"requests", r.requests},
              {"peak_reserved", r.stats.reserved_bytes.all().peak},
              {"peak_allocated", r.stats.allocated_bytes.all().peak},
              {"peak_active", r.stats.active_bytes.all().peak},
              {"peak_requested", r.stats.requested_bytes.all().peak},
              {"peak_inactive_split", r.stats.inactive_split_bytes.all().peak},
              {"end_reserved", r.stats.reserved_bytes.all().current},
              {"retries", r.stats.num_alloc_retries},
              {"stream_waits", r.stats.num_stream_waits},
              {"ooms", r.stats.num_ooms},
              {"oom_rejections", r.stats.num_oom_rejections},
              {"trace_ooms", r.stats.num_ooms + r.stats.num_oom_rejections},
              {"segments_allocated", r.stats.segment.all().allocated},
              {"segments_freed", r.stats.segment.all().freed()},
              {"cudaMalloc", r.calls.segment_alloc},
              {"cudaFree", r.calls.segment_free},
              {"cuMemMap", r.calls.map_pages},
              {"cuMemUnmap", r.calls.unmap_pages},
              {"estimated_driver_ns", OrNull(r.cost_ns)}};
  out["fidelity"] = nullptr;
  if (r.fidelity.has_value()) {
    out["fidelity"] = {{"matched", r.fidelity->matched},
                       {"total", r.fidelity->total},
                       {"segments_matched", r.fidelity->segments_matched},
                       {"segments_total", r.fidelity->segments_total},
                       {"final_state_matches", r.fidelity->final_state_matches},
                       {"segment_addresses_used", r.fidelity->segment_addresses_used},
                       {"tails_inferred", r.fidelity->tails_inferred}};
  }
  out["recorded_peak_reserved"] = OrNull(r.recorded_peak_reserved_bytes);
  out["notes"] = Json::Array();
  for (const trace::Note& note : r.notes) {
    out["notes"].Append({{"name", note.name}, {"message", note.message}, {"count", note.count}});
  }
  return out.ToText();
}

}  // namespace ashlar::report
