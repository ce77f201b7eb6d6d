#include "ps/storage/table_codec.h"

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "optim/rule_codec.h"
#include "proto/table.pb.h"
#include "ps/storage/consistency.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::ps {
namespace {

v1::TableInitializer::Kind KindToProto(Initializer::Kind kind) {
  switch (kind) {
    case Initializer::Kind::kConstant:
      return v1::TableInitializer::CONSTANT;
    case Initializer::Kind::kUniform:
      return v1::TableInitializer::UNIFORM;
    case Initializer::Kind::kNormal:
      return v1::TableInitializer::NORMAL;
  }
  return v1::TableInitializer::UNSPECIFIED;
}

std::optional<Initializer::Kind> KindFromProto(
    v1::TableInitializer::Kind kind) {
  switch (kind) {
    case v1::TableInitializer::CONSTANT:
      return Initializer::Kind::kConstant;
    case v1::TableInitializer::UNIFORM:
      return Initializer::Kind::kUniform;
    case v1::TableInitializer::NORMAL:
      return Initializer::Kind::kNormal;
    default:
      return std::nullopt;
  }
}

v1::TableInitializer ToProto(const Initializer& initializer) {
  v1::TableInitializer proto;
  proto.set_kind(KindToProto(initializer.kind));
  proto.set_a(initializer.a);
  proto.set_b(initializer.b);
  return proto;
}

absl::StatusOr<Initializer> FromProto(const std::string& table,
                                      const v1::TableInitializer& proto) {
  const std::optional<Initializer::Kind> kind = KindFromProto(proto.kind());
  if (kind.has_value()) return Initializer{*kind, proto.a(), proto.b()};
  return absl::InvalidArgumentError(
      absl::StrCat("table \"", table, "\": unknown kind of initial values ",
                   static_cast<int>(proto.kind())));
}

v1::TableKeyRange ToProto(const KeyRange& range) {
  v1::TableKeyRange proto;
  proto.set_first(range.first);
  proto.set_last(range.last);
  if (range.rule.has_value()) {
    *proto.mutable_rule() = optim::ToProto(*range.rule);
  }
  if (range.schedule.has_value()) {
    *proto.mutable_schedule() = optim::ToProto(*range.schedule);
  }
  if (range.initializer.has_value()) {
    *proto.mutable_initializer() = ToProto(*range.initializer);
  }
  return proto;
}

absl::StatusOr<KeyRange> FromProto(const std::string& table,
                                   const v1::TableKeyRange& proto) {
  KeyRange range{.first = proto.first(), .last = proto.last()};
  if (proto.has_rule()) range.rule = optim::FromProto(proto.rule());
  if (proto.has_schedule()) {
    range.schedule = optim::FromProto(proto.schedule());
  }
  if (proto.has_initializer()) {
    ASSIGN_OR_RETURN(range.initializer, FromProto(table, proto.initializer()));
  }
  return range;
}

v1::TableRetention ToProto(const Retention& retention) {
  v1::TableRetention proto;
  proto.set_admission_pushes(retention.admission_pushes);
  proto.set_admission_window(retention.admission_window);
  if (retention.ttl != absl::InfiniteDuration()) {
    proto.set_ttl_seconds(absl::ToInt64Seconds(retention.ttl));
  }
  proto.set_max_rows(retention.max_rows);
  return proto;
}

Retention FromProto(const v1::TableRetention& proto) {
  Retention retention;
  if (proto.admission_pushes() != 0) {
    retention.admission_pushes = proto.admission_pushes();
  }
  if (proto.admission_window() != 0) {
    retention.admission_window = proto.admission_window();
  }
  if (proto.ttl_seconds() != 0) {
    retention.ttl = absl::Seconds(proto.ttl_seconds());
  }
  retention.max_rows = proto.max_rows();
  return retention;
}

v1::TableConsistency ToProto(const Consistency& consistency) {
  v1::TableConsistency proto;
  switch (consistency.mode) {
    case Consistency::Mode::kAsynchronous:
      break;
    case Consistency::Mode::kBoundedStaleness:
      proto.set_mode(v1::TableConsistency::BOUNDED_STALENESS);
      break;
    case Consistency::Mode::kSynchronous:
      proto.set_mode(v1::TableConsistency::SYNCHRONOUS);
      break;
  }
  proto.set_bound(consistency.bound);
  return proto;
}

std::optional<Consistency> FromProto(const v1::TableConsistency& proto) {
  switch (proto.mode()) {
    case v1::TableConsistency::ASYNCHRONOUS:
      return Consistency::Asynchronous();
    case v1::TableConsistency::BOUNDED_STALENESS:
      return Consistency::BoundedStaleness(proto.bound());
    case v1::TableConsistency::SYNCHRONOUS:
      return Consistency::Synchronous();
    default:
      return std::nullopt;
  }
}

}  // namespace

v1::TableDescription ToProto(const TableSpec& spec) {
  v1::TableDescription proto;
  proto.set_name(spec.name);
  proto.set_width(spec.width);
  proto.set_dtype(std::string(tensor::DTypeName(spec.dtype)));
  *proto.mutable_rule() = optim::ToProto(spec.rule);
  *proto.mutable_initializer() = ToProto(spec.initializer);
  proto.set_seed(spec.seed);
  proto.set_num_shards(spec.num_shards);
  for (const DenseTensor& tensor : spec.tensors) {
    v1::DenseTensor& added = *proto.add_tensors();
    added.set_name(tensor.name);
    added.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  }
  if (spec.storage.kind == TableStorage::Kind::kRocksDb) {
    proto.mutable_storage()->set_kind(v1::TableStorage::ROCKSDB);
    proto.mutable_storage()->set_rows_in_memory(spec.storage.rows_in_memory);
  }
  if (spec.retention.active()) {
    *proto.mutable_retention() = ToProto(spec.retention);
  }
  if (spec.consistency.clocked()) {
    *proto.mutable_consistency() = ToProto(spec.consistency);
  }
  if (!spec.schedule.is_constant()) {
    *proto.mutable_schedule() = optim::ToProto(spec.schedule);
  }
  for (const KeyRange& range : spec.key_ranges) {
    *proto.add_key_ranges() = ToProto(range);
  }
  return proto;
}

absl::StatusOr<TableSpec> FromProto(const v1::TableDescription& proto) {
  TableSpec spec;
  spec.name = proto.name();
  spec.width = proto.width();
  const std::optional<tensor::DType> dtype =
      tensor::DTypeFromName(proto.dtype());
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", spec.name, "\": unknown dtype \"", proto.dtype(), "\""));
  }
  spec.dtype = *dtype;
  spec.rule = optim::FromProto(proto.rule());
  ASSIGN_OR_RETURN(spec.initializer, FromProto(spec.name, proto.initializer()));
  spec.seed = proto.seed();
  spec.num_shards = proto.num_shards();
  for (const v1::DenseTensor& tensor : proto.tensors()) {
    ASSIGN_OR_RETURN(const tensor::Shape shape,
                     tensor::Shape::Create(std::span(tensor.shape().data(),
                                                     tensor.shape().size())));
    spec.tensors.push_back({tensor.name(), shape});
  }
  spec.retention = FromProto(proto.retention());
  switch (proto.storage().kind()) {
    case v1::TableStorage::MEMORY:
      break;
    case v1::TableStorage::ROCKSDB:
      spec.storage.kind = TableStorage::Kind::kRocksDb;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("table \"", spec.name, "\": unknown kind of storage ",
                       static_cast<int>(proto.storage().kind())));
  }
  spec.storage.rows_in_memory = proto.storage().rows_in_memory();
  const std::optional<Consistency> consistency = FromProto(proto.consistency());
  if (!consistency.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table \"", spec.name, "\": unknown consistency ",
                     static_cast<int>(proto.consistency().mode())));
  }
  spec.consistency = *consistency;
  spec.schedule = optim::FromProto(proto.schedule());
  for (const v1::TableKeyRange& range : proto.key_ranges()) {
    ASSIGN_OR_RETURN(spec.key_ranges.emplace_back(),
                     FromProto(spec.name, range));
  }
  return NormalizeTableSpec(std::move(spec));
}

v1::TableShards ToProto(ShardRange shards) {
  v1::TableShards proto;
  proto.set_first_shard(shards.first);
  proto.set_num_shards(shards.count);
  return proto;
}

ShardRange FromProto(const v1::TableShards& proto) {
  return {proto.first_shard(), proto.num_shards()};
}

}  // namespace hawser::ps
