#include "ps/table_metrics.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/table_statistics.h"

namespace hawser::ps {
namespace {

using ::hawser::telemetry::Metric;
using ::hawser::telemetry::MetricFamily;
using ::hawser::telemetry::MetricType;

struct CountMapping {
  int64_t TableCounts::*count;
  const char* family;
  const char* help;
};

constexpr CountMapping kCounts[] = {
    {&TableCounts::pushes_applied, "ps_push_applied_total",
     "Pushes that updated rows."},
    {&TableCounts::pushes_repeated, "ps_push_duplicate_total",
     "Pushes that arrived again and were not applied again."},
    {&TableCounts::keys_pushed, "ps_push_keys_total", "Keys of these pushes."},
    {&TableCounts::bytes_pushed, "ps_push_bytes_total",
     "Bytes of gradients of these pushes."},
    {&TableCounts::pulls, "ps_pull_total", "Requests that read rows."},
    {&TableCounts::keys_pulled, "ps_pull_keys_total",
     "Keys of these requests."},
    {&TableCounts::bytes_pulled, "ps_pull_bytes_total",
     "Bytes of rows in replies."},
};

struct RetentionMapping {
  int64_t RetentionCounts::*count;
  const char* family;
  const char* help;
};

constexpr RetentionMapping kRetentionCounts[] = {
    {&RetentionCounts::rows_expired, "ps_rows_expired_total",
     "Rows that were removed after their time to live."},
    {&RetentionCounts::rows_evicted, "ps_rows_evicted_total",
     "Rows that were removed to make room for others."},
    {&RetentionCounts::updates_not_admitted, "ps_updates_not_admitted_total",
     "Gradients of keys that had too few pushes for a row."},
    {&RetentionCounts::updates_without_room, "ps_updates_without_room_total",
     "Gradients of keys for which there was no room."},
};

Metric Labelled(LoggedTable& table, double value) {
  return {.labels = {{"table", table.table().spec().name}}, .value = value};
}

Metric Labelled(LoggedTable& table,
                const telemetry::DurationHistogram& durations) {
  return {.labels = {{"table", table.table().spec().name}},
          .histogram = durations.counts()};
}

}  // namespace

std::vector<MetricFamily> TableMetrics(
    const std::vector<std::shared_ptr<LoggedTable>>& tables,
    const RefusedRequests& refused, absl::Time now) {
  std::vector<MetricFamily> families;
  for (const CountMapping& mapping : kCounts) {
    MetricFamily& family = families.emplace_back(
        MetricFamily{mapping.family, mapping.help, MetricType::kCounter});
    for (const auto& table : tables) {
      family.metrics.push_back(Labelled(
          *table,
          static_cast<double>(table->statistics().counts().*mapping.count)));
    }
  }
  for (const RetentionMapping& mapping : kRetentionCounts) {
    MetricFamily& family = families.emplace_back(
        MetricFamily{mapping.family, mapping.help, MetricType::kCounter});
    for (const auto& table : tables) {
      if (!table->table().spec().retention.active()) continue;
      family.metrics.push_back(Labelled(
          *table, static_cast<double>(table->table().retention_counts().*
                                      mapping.count)));
    }
  }
  MetricFamily count{"ps_tables",
                     "Tables of this server.",
                     MetricType::kGauge,
                     {{.value = static_cast<double>(tables.size())}}};
  MetricFamily rows{"ps_shard_keys", "Rows of a table on this server.",
                    MetricType::kGauge};
  MetricFamily bytes{"ps_table_bytes", "Memory of these rows and their keys.",
                     MetricType::kGauge};
  MetricFamily ages{"checkpoint_age_seconds",
                    "Time since the last snapshot of a table.",
                    MetricType::kGauge};
  MetricFamily saves{"checkpoint_seconds", "Durations of snapshots.",
                     MetricType::kHistogram};
  MetricFamily syncs{"wal_fsync_seconds", "Durations of syncs of the log.",
                     MetricType::kHistogram};
  for (const auto& table : tables) {
    rows.metrics.push_back(
        Labelled(*table, static_cast<double>(table->table().num_rows())));
    bytes.metrics.push_back(
        Labelled(*table, static_cast<double>(table->table().bytes())));
    saves.metrics.push_back(
        Labelled(*table, table->statistics().snapshot_durations()));
    syncs.metrics.push_back(
        Labelled(*table, table->statistics().sync_durations()));
    const std::optional<SavedSnapshot> last =
        table->statistics().last_snapshot();
    if (!last.has_value()) continue;
    ages.metrics.push_back(
        Labelled(*table, absl::ToDoubleSeconds(now - last->time)));
  }
  MetricFamily rejected{"rejected_total",
                        "Requests for tables that failed, by status code.",
                        MetricType::kCounter};
  for (const auto& [reason, number] : refused.counts()) {
    rejected.metrics.push_back(
        {.labels = {{"reason", absl::AsciiStrToLower(reason)}},
         .value = static_cast<double>(number)});
  }
  for (MetricFamily* family :
       {&count, &rows, &bytes, &ages, &saves, &syncs, &rejected}) {
    families.push_back(std::move(*family));
  }
  return families;
}

}  // namespace hawser::ps
