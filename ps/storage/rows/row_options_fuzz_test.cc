// Any bytes as the description of a table: what is accepted is written as it
// was read, and gives each key range options of its own, and rates that are
// numbers from 0 on.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "proto/table.pb.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/rows/row_options.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hawser::ps;
  hawser::v1::TableDescription message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const absl::StatusOr<TableSpec> spec = FromProto(message);
  if (!spec.ok()) {
    HAWSER_CHECK(absl::IsInvalidArgument(spec.status()))
        << spec.status().message();
    return 0;
  }
  const absl::StatusOr<TableSpec> again = FromProto(ToProto(*spec));
  HAWSER_CHECK(again.ok() && *again == *spec) << "another description";

  const absl::StatusOr<std::unique_ptr<const RowOptionsByKey>> options =
      RowOptionsByKey::Create(*spec);
  // Of a rule that this process does not have.
  if (!options.ok()) return 0;
  // Index 0 is that of the table.
  for (size_t i = 0; i < spec->key_ranges.size(); ++i) {
    const KeyRange& range = spec->key_ranges[i];
    HAWSER_CHECK((*options)->Of(range.first).index == i + 1) << range.first;
    HAWSER_CHECK((*options)->Of(range.last).index == i + 1) << range.last;
  }
  for (const int64_t step :
       {int64_t{0}, int64_t{1}, int64_t{1} << 40, int64_t{1} << 60}) {
    for (const PushRate& push :
         {PushRate{.step = step}, PushRate{}, PushRate{.learning_rate = 0.5}}) {
      RowRates rates(**options, push);
      for (const KeyRange& range : spec->key_ranges) {
        for (const uint64_t key : {range.first, range.last, range.last + 1}) {
          const double rate = rates.Of((*options)->Of(key), step);
          HAWSER_CHECK(std::isfinite(rate) && rate >= 0) << rate;
        }
      }
      const double rate = rates.Of((*options)->of_table(), step);
      HAWSER_CHECK(std::isfinite(rate) && rate >= 0) << rate;
    }
  }
  return 0;
}
