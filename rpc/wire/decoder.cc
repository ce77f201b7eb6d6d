#include "rpc/wire/decoder.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "rpc/wire/value_fields.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

using internal::UnZigZag;
using internal::WireField;
using internal::WireReader;
using internal::WireType;

absl::Status Malformed() {
  return absl::InvalidArgumentError("the values received are malformed");
}

absl::Status Missing() {
  return absl::InvalidArgumentError("fewer values were received than expected");
}

std::string_view FieldName(uint32_t field) {
  switch (field) {
    case internal::kNullValue:
      return "null";
    case internal::kBoolValue:
      return "a bool";
    case internal::kIntValue:
      return "an integer";
    case internal::kUintValue:
      return "an unsigned integer";
    case internal::kDoubleValue:
      return "a floating-point number";
    case internal::kStringValue:
      return "a string";
    case internal::kBytesValue:
      return "bytes";
    case internal::kTensorIndex:
      return "a tensor";
    case internal::kListValue:
      return "a list";
    case internal::kMapValue:
      return "a map";
    case internal::kMessageValue:
      return "a message";
    case internal::kIntList:
      return "a list of integers";
    case internal::kUintList:
      return "a list of unsigned integers";
    case internal::kDoubleList:
      return "a list of floating-point numbers";
    default:
      return "an unknown kind of value";
  }
}

absl::Status WrongKind(std::string_view expected, uint32_t field) {
  const std::string_view found = FieldName(field);
  return absl::InvalidArgumentError(absl::StrCat(
      "expected ", absl::string_view(expected.data(), expected.size()),
      ", received ", absl::string_view(found.data(), found.size())));
}

absl::Status OutOfRange() {
  return absl::InvalidArgumentError("the integer received is out of range");
}

bool Succeeded(const async::Future<void>& future) {
  return future.ready() && future.result().ok();
}

// Returns the prerequisites that have not succeeded at once.
std::vector<async::Future<void>> StartAll(
    std::vector<Decoder::StartPrerequisite> starts) {
  std::vector<async::Future<void>> pending;
  for (Decoder::StartPrerequisite& start : starts) {
    async::Future<void> started = std::move(start)();
    if (!Succeeded(started)) pending.push_back(std::move(started));
  }
  return pending;
}

// Numbers of a packed list, which protobuf allows to be split.
template <class T, class ReadPacked>
absl::StatusOr<std::vector<T>> ReadNumbers(std::string_view list,
                                           ReadPacked read) {
  std::vector<T> numbers;
  WireReader reader(list);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) return Malformed();
    if (field.number != internal::kPackedValues) continue;
    if (field.type != WireType::kBytes || !read(field.bytes, numbers)) {
      return Malformed();
    }
  }
  return numbers;
}

template <class T, class Convert>
bool ReadVarints(std::string_view packed, Convert convert,
                 std::vector<T>& numbers) {
  WireReader reader(packed);
  uint64_t value = 0;
  while (!reader.AtEnd()) {
    if (!reader.ReadVarint(value)) return false;
    numbers.push_back(convert(value));
  }
  return true;
}

}  // namespace

Decoder::Decoder(Agent* agent, const WorkerInfo* peer, std::string_view values,
                 std::vector<tensor::Tensor> tensors)
    : agent_(agent), peer_(peer), tensors_(std::move(tensors)) {
  frames_.push_back({FrameKind::kSequence, values});
}

absl::StatusOr<std::string_view> Decoder::PeekElement(
    std::string_view& rest) const {
  const Frame& frame = frames_.back();
  if (frame.rest.empty()) return Missing();
  uint32_t expected = internal::kListValues;
  if (frame.kind == FrameKind::kEntry) {
    expected = frame.taken == 0 ? internal::kEntryKey : internal::kEntryValue;
  }
  WireReader reader(frame.rest);
  WireField field;
  if (!reader.ReadField(field) || field.type != WireType::kBytes ||
      field.number != expected) {
    return Malformed();
  }
  rest = reader.rest();
  return field.bytes;
}

absl::StatusOr<std::string_view> Decoder::NextElement() {
  std::string_view rest;
  ASSIGN_OR_RETURN(const std::string_view element, PeekElement(rest));
  frames_.back().rest = rest;
  ++frames_.back().taken;
  return element;
}

absl::StatusOr<Decoder::Item> Decoder::ParseItem(std::string_view element) {
  WireReader reader(element);
  WireField field;
  // A value must have exactly one kind.
  if (!reader.ReadField(field) || !reader.AtEnd()) return Malformed();
  WireType expected = WireType::kBytes;
  switch (field.number) {
    case internal::kBoolValue:
    case internal::kIntValue:
    case internal::kUintValue:
    case internal::kTensorIndex:
      expected = WireType::kVarint;
      break;
    case internal::kDoubleValue:
      expected = WireType::kFixed64;
      break;
    default:
      break;
  }
  if (field.type != expected) return Malformed();
  return Item{field.number, field.value, field.bytes};
}

absl::StatusOr<Decoder::Item> Decoder::Next() {
  if (frames_.back().kind == FrameKind::kMap) {
    return absl::InvalidArgumentError("expected the end of a map's entry");
  }
  ASSIGN_OR_RETURN(const std::string_view element, NextElement());
  return ParseItem(element);
}

absl::StatusOr<Decoder::Item> Decoder::Next(uint32_t field) {
  ASSIGN_OR_RETURN(Item item, Next());
  if (item.field != field) return WrongKind(FieldName(field), item.field);
  return item;
}

bool Decoder::NextIsNull() const {
  std::string_view rest;
  absl::StatusOr<std::string_view> element = PeekElement(rest);
  if (!element.ok()) return false;
  absl::StatusOr<Item> item = ParseItem(*element);
  return item.ok() && item->field == internal::kNullValue;
}

absl::Status Decoder::ReadNull() { return Next(internal::kNullValue).status(); }

absl::StatusOr<bool> Decoder::ReadBool() {
  ASSIGN_OR_RETURN(const Item item, Next(internal::kBoolValue));
  return item.number != 0;
}

absl::StatusOr<int64_t> Decoder::ReadInt() {
  ASSIGN_OR_RETURN(const Item item, Next());
  if (item.field == internal::kIntValue) return UnZigZag(item.number);
  if (item.field != internal::kUintValue) {
    return WrongKind(FieldName(internal::kIntValue), item.field);
  }
  if (item.number > std::numeric_limits<int64_t>::max()) return OutOfRange();
  return static_cast<int64_t>(item.number);
}

absl::StatusOr<uint64_t> Decoder::ReadUint() {
  ASSIGN_OR_RETURN(const Item item, Next());
  if (item.field == internal::kUintValue) return item.number;
  if (item.field != internal::kIntValue) {
    return WrongKind(FieldName(internal::kUintValue), item.field);
  }
  const int64_t value = UnZigZag(item.number);
  if (value < 0) return OutOfRange();
  return static_cast<uint64_t>(value);
}

absl::StatusOr<double> Decoder::ReadDouble() {
  ASSIGN_OR_RETURN(const Item item, Next(internal::kDoubleValue));
  double value = 0;
  std::memcpy(&value, &item.number, sizeof(value));
  return value;
}

absl::StatusOr<std::string> Decoder::ReadString() {
  ASSIGN_OR_RETURN(const Item item, Next());
  if (item.field != internal::kStringValue &&
      item.field != internal::kBytesValue) {
    return WrongKind(FieldName(internal::kStringValue), item.field);
  }
  return std::string(item.bytes);
}

absl::StatusOr<tensor::Tensor> Decoder::ReadTensor() {
  ASSIGN_OR_RETURN(const Item item, Next());
  if (item.field == internal::kNullValue) return tensor::Tensor();
  if (item.field != internal::kTensorIndex) {
    return WrongKind(FieldName(internal::kTensorIndex), item.field);
  }
  if (item.number >= tensors_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value refers to tensor ", item.number, " of ",
                     tensors_.size(), " received"));
  }
  return tensors_[item.number];
}

absl::StatusOr<std::string_view> Decoder::ReadMessage(std::string_view type) {
  ASSIGN_OR_RETURN(const Item item, Next(internal::kMessageValue));
  std::string_view received_type;
  std::string_view data;
  WireReader reader(item.bytes);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) return Malformed();
    if (field.type != WireType::kBytes) continue;
    if (field.number == internal::kMessageType) received_type = field.bytes;
    if (field.number == internal::kMessageData) data = field.bytes;
  }
  if (received_type != type) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a ", absl::string_view(type.data(), type.size()),
                     ", received another message"));
  }
  return data;
}

absl::StatusOr<std::vector<int64_t>> Decoder::ReadInts() {
  ASSIGN_OR_RETURN(const Item item, Next(internal::kIntList));
  return ReadNumbers<int64_t>(
      item.bytes, [](std::string_view packed, std::vector<int64_t>& numbers) {
        return ReadVarints(packed, UnZigZag, numbers);
      });
}

absl::StatusOr<std::vector<uint64_t>> Decoder::ReadUints() {
  ASSIGN_OR_RETURN(const Item item, Next(internal::kUintList));
  return ReadNumbers<uint64_t>(
      item.bytes, [](std::string_view packed, std::vector<uint64_t>& numbers) {
        return ReadVarints(
            packed, [](uint64_t value) { return value; }, numbers);
      });
}

absl::StatusOr<std::vector<double>> Decoder::ReadDoubles() {
  ASSIGN_OR_RETURN(const Item item, Next(internal::kDoubleList));
  return ReadNumbers<double>(
      item.bytes, [](std::string_view packed, std::vector<double>& numbers) {
        if (packed.size() % sizeof(double) != 0) return false;
        const size_t before = numbers.size();
        numbers.resize(before + packed.size() / sizeof(double));
        if (!packed.empty()) {
          std::memcpy(numbers.data() + before, packed.data(), packed.size());
        }
        return true;
      });
}

absl::Status Decoder::Enter(FrameKind kind, std::string_view content) {
  if (frames_.size() >= kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("the values received are nested deeper than ", kMaxDepth));
  }
  frames_.push_back({kind, content});
  return absl::OkStatus();
}

absl::Status Decoder::EnterList() {
  ASSIGN_OR_RETURN(const Item item, Next(internal::kListValue));
  return Enter(FrameKind::kSequence, item.bytes);
}

absl::Status Decoder::EnterMap() {
  ASSIGN_OR_RETURN(const Item item, Next(internal::kMapValue));
  return Enter(FrameKind::kMap, item.bytes);
}

absl::Status Decoder::EnterEntry() {
  HAWSER_CHECK(frames_.back().kind == FrameKind::kMap) << "not in a map";
  ASSIGN_OR_RETURN(const std::string_view entry, NextElement());
  return Enter(FrameKind::kEntry, entry);
}

absl::Status Decoder::Leave() {
  HAWSER_CHECK(frames_.size() > 1) << "nothing is open";
  if (!AtEnd()) {
    return absl::InvalidArgumentError(
        "a received list has more values than expected");
  }
  frames_.pop_back();
  return absl::OkStatus();
}

void Decoder::AddPrerequisite(async::Future<void> prerequisite) {
  if (Succeeded(prerequisite)) return;
  prerequisites_.push_back(std::move(prerequisite));
}

void Decoder::AddLastPrerequisite(StartPrerequisite start) {
  last_prerequisites_.push_back(std::move(start));
}

std::vector<async::Future<void>> Decoder::TakePrerequisites() {
  std::vector<async::Future<void>> taken = std::move(prerequisites_);
  if (last_prerequisites_.empty()) return taken;
  if (taken.empty()) return StartAll(std::move(last_prerequisites_));
  async::Future<void> all =
      async::JoinAll(std::move(taken))
          .Then([last = std::move(last_prerequisites_)](
                    const absl::Status& status) mutable {
            if (!status.ok()) return async::MakeReadyFuture<void>(status);
            return async::JoinAll(StartAll(std::move(last)));
          });
  return {std::move(all)};
}

}  // namespace hawser::rpc
