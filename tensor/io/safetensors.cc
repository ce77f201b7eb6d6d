#include "tensor/io/safetensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <span>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/atomic_file.h"
#include "fs/input_file.h"
#include "tensor/io/safetensors_header.h"
#include "tensor/io/tensor_file.h"

namespace hawser::tensor {
namespace {

constexpr uint64_t kLengthBytes = sizeof(uint64_t);

absl::Status Invalid(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("safetensors file ", path, ": ", what));
}

// Whether a file that begins with `start` looks like output of torch.save: a
// zip file, or a pickle of protocol 2 to 5.
bool IsFromTorchSave(uint64_t start) {
  constexpr uint32_t kZip = 0x04034b50;
  constexpr uint8_t kPickle = 0x80;
  const auto protocol = static_cast<uint8_t>(start >> 8);
  return static_cast<uint32_t>(start) == kZip ||
         (static_cast<uint8_t>(start) == kPickle && protocol >= 2 &&
          protocol <= 5);
}

// As Invalid, for a file whose header cannot be read.
absl::Status InvalidHeader(const std::string& path, uint64_t start,
                           absl::string_view what) {
  if (!IsFromTorchSave(start)) return Invalid(path, what);
  return Invalid(
      path,
      "it looks like a file of torch.save (.pt, .pth, .pkl), which is not "
      "supported, because it can run code; convert it in Python: "
      "safetensors.torch.save_file(torch.load(path, "
      "weights_only=True), \"new.safetensors\")");
}

// Reads the header, and sets the offset of the data.
absl::StatusOr<internal::SafetensorsHeader> ReadHeader(
    const fs::InputFile& file, uint64_t& data_offset) {
  if (file.bytes() < kLengthBytes) {
    return Invalid(file.path(), "shorter than its 8 bytes of header length");
  }
  uint64_t header_bytes;
  RETURN_IF_ERROR(
      file.ReadAt(0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  if (header_bytes > internal::kMaxSafetensorsHeaderBytes) {
    return InvalidHeader(
        file.path(), header_bytes,
        absl::StrCat("a header of ", header_bytes, " bytes; the format allows ",
                     internal::kMaxSafetensorsHeaderBytes));
  }
  if (header_bytes > file.bytes() - kLengthBytes) {
    return InvalidHeader(file.path(), header_bytes,
                         absl::StrCat("a header of ", header_bytes,
                                      " bytes in a file of ", file.bytes()));
  }
  std::string json(header_bytes, '\0');
  RETURN_IF_ERROR(
      file.ReadAt(kLengthBytes, std::as_writable_bytes(std::span(json))));
  data_offset = kLengthBytes + header_bytes;
  auto header =
      internal::ParseSafetensorsHeader(json, file.bytes() - data_offset);
  if (!header.ok()) {
    return InvalidHeader(file.path(), header_bytes, header.status().message());
  }
  return header;
}

// Indices into `tensors`, largest element size first. Since each tensor's size
// is a multiple of its element size, all tensors are aligned.
std::vector<size_t> DataOrder(
    const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return ItemBytes(tensors[a].second.dtype()) >
           ItemBytes(tensors[b].second.dtype());
  });
  return order;
}

absl::Status CheckNames(const std::string& path, const SafetensorsFile& file) {
  std::set<std::string_view> names = {"__metadata__"};
  for (const auto& [name, tensor] : file.tensors) {
    if (!tensor.defined()) {
      return Invalid(path, absl::StrCat("tensor ", internal::QuotedName(name),
                                        " is undefined"));
    }
    if (!names.insert(name).second) {
      return Invalid(path, absl::StrCat("the name ", internal::QuotedName(name),
                                        " is given twice or reserved"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const Tensor* SafetensorsFile::Find(std::string_view name) const {
  for (const auto& [tensor_name, tensor] : tensors) {
    if (tensor_name == name) return &tensor;
  }
  return nullptr;
}

absl::StatusOr<SafetensorsFile> LoadSafetensors(std::string_view path) {
  ASSIGN_OR_RETURN(const fs::InputFile file,
                   fs::InputFile::Open(std::string(path)));
  uint64_t data_offset = 0;
  ASSIGN_OR_RETURN(internal::SafetensorsHeader header,
                   ReadHeader(file, data_offset));
  SafetensorsFile result;
  result.metadata = std::move(header.metadata);
  for (internal::SafetensorsEntry& entry : header.entries) {
    ASSIGN_OR_RETURN(Tensor tensor,
                     internal::ReadElements(file, data_offset + entry.begin,
                                            entry.dtype, entry.shape));
    result.tensors.emplace_back(std::move(entry.name), std::move(tensor));
  }
  return result;
}

absl::Status SaveSafetensors(std::string_view path,
                             const SafetensorsFile& file) {
  const std::string name(path);
  RETURN_IF_ERROR(CheckNames(name, file));
  const std::vector<size_t> order = DataOrder(file.tensors);
  internal::SafetensorsHeader header;
  header.metadata = file.metadata;
  uint64_t end = 0;
  for (const size_t i : order) {
    const auto& [tensor_name, tensor] = file.tensors[i];
    const uint64_t begin = end;
    end += static_cast<uint64_t>(tensor.byte_size());
    header.entries.push_back(
        {tensor_name, tensor.dtype(), tensor.shape(), begin, end});
  }
  const auto json = internal::FormatSafetensorsHeader(header);
  if (!json.ok()) return Invalid(name, json.status().message());
  if (json->size() > internal::kMaxSafetensorsHeaderBytes) {
    return Invalid(name, absl::StrCat("a header of ", json->size(),
                                      " bytes; the format allows ",
                                      internal::kMaxSafetensorsHeaderBytes));
  }
  ASSIGN_OR_RETURN(fs::AtomicFile output, fs::AtomicFile::Create(name));
  const uint64_t header_bytes = json->size();
  RETURN_IF_ERROR(output.Append(std::as_bytes(std::span(&header_bytes, 1))));
  RETURN_IF_ERROR(output.Append(std::as_bytes(std::span(*json))));
  for (const size_t i : order) {
    RETURN_IF_ERROR(internal::AppendElements(file.tensors[i].second, output));
  }
  return output.Commit();
}

}  // namespace hawser::tensor
