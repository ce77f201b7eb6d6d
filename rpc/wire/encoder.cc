#include "rpc/wire/encoder.h"

#include <cstring>
#include <utility>

#include "async/check.h"
#include "net/wire_text.h"
#include "rpc/wire/value_fields.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

using internal::AppendBytesField;
using internal::AppendFixed64Field;
using internal::AppendVarint;
using internal::AppendVarintField;
using internal::MakeTag;
using internal::WireType;
using internal::ZigZag;

// All tags here fit one byte.
constexpr uint8_t BytesTag(uint32_t field) {
  return static_cast<uint8_t>(MakeTag(field, WireType::kBytes));
}

constexpr uint8_t kListElement = BytesTag(internal::kListValues);
constexpr uint8_t kMapElement = BytesTag(internal::kMapEntries);

}  // namespace

void Encoder::Open(uint8_t tag) {
  out_.push_back(static_cast<char>(tag));
  open_.push_back(out_.size());
}

void Encoder::Close() {
  HAWSER_CHECK(!open_.empty()) << "nothing is open";
  const size_t start = open_.back();
  open_.pop_back();
  char length[internal::kMaxVarintBytes];
  const size_t length_bytes = internal::PutVarint(out_.size() - start, length);
  out_.insert(start, length, length_bytes);
}

void Encoder::OpenElement() {
  last_is_null_ = false;
  if (element_tags_.empty()) {
    Open(kListElement);
    return;
  }
  uint8_t& tag = element_tags_.back();
  Open(tag);
  // In an entry, the value's field follows the key's.
  if (in_entry_.back()) {
    HAWSER_CHECK(tag <= BytesTag(internal::kEntryValue))
        << "a map entry has one key and one value";
    tag = static_cast<uint8_t>(tag + (1 << 3));
  }
}

void Encoder::WriteNull() {
  OpenElement();
  AppendBytesField(internal::kNullValue, "", out_);
  Close();
  last_is_null_ = true;
}

void Encoder::WriteBool(bool value) {
  OpenElement();
  AppendVarintField(internal::kBoolValue, value ? 1 : 0, out_);
  Close();
}

void Encoder::WriteInt(int64_t value) {
  OpenElement();
  AppendVarintField(internal::kIntValue, ZigZag(value), out_);
  Close();
}

void Encoder::WriteUint(uint64_t value) {
  OpenElement();
  AppendVarintField(internal::kUintValue, value, out_);
  Close();
}

void Encoder::WriteDouble(double value) {
  OpenElement();
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  AppendFixed64Field(internal::kDoubleValue, bits, out_);
  Close();
}

void Encoder::WriteString(std::string_view value) {
  OpenElement();
  AppendBytesField(
      net::IsUtf8(value) ? internal::kStringValue : internal::kBytesValue,
      value, out_);
  Close();
}

void Encoder::WriteBytes(std::string_view value) {
  OpenElement();
  AppendBytesField(internal::kBytesValue, value, out_);
  Close();
}

void Encoder::WriteTensor(tensor::Tensor value) {
  if (!value.defined()) {
    WriteNull();
    return;
  }
  OpenElement();
  AppendVarintField(internal::kTensorIndex, tensors_.size(), out_);
  Close();
  tensors_.push_back(std::move(value));
}

void Encoder::WriteMessage(std::string_view type, std::string_view data) {
  OpenElement();
  Open(BytesTag(internal::kMessageValue));
  AppendBytesField(internal::kMessageType, type, out_);
  AppendBytesField(internal::kMessageData, data, out_);
  Close();
  Close();
}

void Encoder::WriteInts(std::span<const int64_t> values) {
  OpenElement();
  Open(BytesTag(internal::kIntList));
  Open(BytesTag(internal::kPackedValues));
  for (int64_t value : values) AppendVarint(ZigZag(value), out_);
  Close();
  Close();
  Close();
}

void Encoder::WriteUints(std::span<const uint64_t> values) {
  OpenElement();
  Open(BytesTag(internal::kUintList));
  Open(BytesTag(internal::kPackedValues));
  for (uint64_t value : values) AppendVarint(value, out_);
  Close();
  Close();
  Close();
}

void Encoder::WriteDoubles(std::span<const double> values) {
  OpenElement();
  Open(BytesTag(internal::kDoubleList));
  AppendBytesField(
      internal::kPackedValues,
      {reinterpret_cast<const char*>(values.data()), values.size_bytes()},
      out_);
  Close();
  Close();
}

void Encoder::Begin(uint8_t element_tag, bool entry) {
  element_tags_.push_back(element_tag);
  in_entry_.push_back(entry);
}

void Encoder::End() {
  HAWSER_CHECK(!element_tags_.empty()) << "nothing is open";
  element_tags_.pop_back();
  in_entry_.pop_back();
  Close();
  last_is_null_ = false;
}

void Encoder::BeginList() {
  OpenElement();
  Open(BytesTag(internal::kListValue));
  Begin(kListElement, /*entry=*/false);
}

void Encoder::EndList() {
  End();
  Close();
}

void Encoder::BeginMap() {
  OpenElement();
  Open(BytesTag(internal::kMapValue));
  Begin(kMapElement, /*entry=*/false);
}

void Encoder::EndMap() {
  End();
  Close();
}

void Encoder::BeginEntry() {
  OpenElement();
  Begin(BytesTag(internal::kEntryKey), /*entry=*/true);
}

void Encoder::EndEntry() { End(); }

std::string Encoder::TakeValues() {
  HAWSER_CHECK(open_.empty()) << "a list or map is still open";
  return std::exchange(out_, {});
}

std::vector<tensor::Tensor> Encoder::TakeTensors() {
  return std::exchange(tensors_, {});
}

}  // namespace hawser::rpc
