#include "rpc/grpc/fragments/message_assembler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "grpcpp/support/slice.h"
#include "proto/fragments.pb.h"
#include "rpc/grpc/fragments/message_fragments.h"
#include "tensor/backend/cpu/vector_copy.h"
#include "tensor/device.h"

namespace hawser::rpc {
namespace {

constexpr int kWireVarint = 0;
constexpr int kWireBytes = 2;
constexpr int kMaxVarintBytes = 10;

// From this size on, copies bypass the caches.
constexpr size_t kMinStreamed = size_t{4} << 10;

absl::Status Malformed() {
  return absl::InternalError(
      "a fragment of a request is malformed (proto/fragments.proto)");
}

void CopySlices(const std::vector<::grpc::Slice>& from, char* to) {
  for (const ::grpc::Slice& slice : from) {
    if (slice.size() < kMinStreamed) {
      std::memcpy(to, slice.begin(), slice.size());
    } else {
      tensor::cpu::StreamCopy(to, slice.begin(), slice.size());
    }
    to += slice.size();
  }
}

}  // namespace

// The bytes of one fragment, in gRPC's slices.
class MessageAssembler::Reader {
 public:
  explicit Reader(std::vector<::grpc::Slice> slices)
      : slices_(std::move(slices)) {
    for (const ::grpc::Slice& slice : slices_) left_ += slice.size();
  }

  size_t left() const { return left_; }

  bool ReadVarint(uint64_t& value) {
    value = 0;
    for (int i = 0; i < kMaxVarintBytes && left_ > 0; ++i) {
      while (InSlice() == 0) Skip(0);
      const uint8_t byte = slices_[slice_].begin()[offset_];
      Skip(1);
      if (i == kMaxVarintBytes - 1 && byte > 1) return false;
      value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte < 0x80) return true;
    }
    return false;
  }

  // Returns the next `size` bytes, at most left(), without copying them.
  std::vector<::grpc::Slice> Take(size_t size) {
    std::vector<::grpc::Slice> taken;
    while (size > 0) {
      const size_t here = std::min(size, InSlice());
      taken.push_back(slices_[slice_].sub(offset_, offset_ + here));
      size -= here;
      Skip(here);
    }
    return taken;
  }

 private:
  // Bytes left in the current slice.
  size_t InSlice() const { return slices_[slice_].size() - offset_; }
  // `size` is at most InSlice().
  void Skip(size_t size) {
    left_ -= size;
    offset_ += size;
    if (offset_ == slices_[slice_].size()) {
      ++slice_;
      offset_ = 0;
    }
  }

  const std::vector<::grpc::Slice> slices_;
  size_t left_ = 0;
  size_t slice_ = 0;
  size_t offset_ = 0;
};

absl::Status AssemblyBudget::Reserve(const std::string& peer, size_t bytes) {
  async::MutexLock lock(&mutex_);
  if (bytes > bytes_ - used_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a request of ", bytes,
        " bytes exceeds the memory limit: all requests being received may "
        "take ",
        bytes_, " bytes together (GrpcLimits::memory_quota_bytes)"));
  }
  const auto of_peer = used_by_.find(peer);
  const size_t used = of_peer == used_by_.end() ? 0 : of_peer->second;
  if (bytes > bytes_per_peer_ - used) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a request of ", bytes,
        " bytes exceeds the memory limit: requests being received of one peer "
        "may "
        "take ",
        bytes_per_peer_, " bytes together (GrpcLimits::memory_quota_bytes)"));
  }
  used_ += bytes;
  if (bytes > 0) used_by_[peer] += bytes;
  return absl::OkStatus();
}

void AssemblyBudget::Release(const std::string& peer, size_t bytes) {
  if (bytes == 0) return;
  async::MutexLock lock(&mutex_);
  used_ -= bytes;
  const auto of_peer = used_by_.find(peer);
  of_peer->second -= bytes;
  if (of_peer->second == 0) used_by_.erase(of_peer);
}

MessageAssembler::MessageAssembler(size_t max_bytes,
                                   std::shared_ptr<AssemblyBudget> budget,
                                   std::string peer)
    : max_bytes_(max_bytes),
      budget_(std::move(budget)),
      peer_(std::move(peer)) {}

MessageAssembler::~MessageAssembler() { ReleaseBudget(); }

void MessageAssembler::ReleaseBudget() {
  budget_->Release(peer_, std::exchange(reserved_, 0));
}

absl::Status MessageAssembler::AddPart(uint64_t bytes) {
  const bool two_small = bytes < kMinLargePart && !part_bytes_.empty() &&
                         part_bytes_.back() < kMinLargePart;
  if (bytes == 0 || two_small) return Malformed();
  // Avoids overflow.
  if (bytes > max_bytes_ - total_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a message of more than ", total_, " + ", bytes,
        " bytes exceeds the limit of ", max_bytes_,
        " bytes; raise GrpcTransportOptions::max_message_bytes at both ends"));
  }
  total_ += bytes;
  part_bytes_.push_back(bytes);
  return absl::OkStatus();
}

absl::Status MessageAssembler::Allocate() {
  if (part_bytes_.empty()) return Malformed();
  RETURN_IF_ERROR(budget_->Reserve(peer_, total_));
  reserved_ = total_;
  parts_.reserve(part_bytes_.size());
  for (const size_t bytes : part_bytes_) {
    ASSIGN_OR_RETURN(tensor::StoragePtr part,
                     tensor::Storage::Allocate(bytes, tensor::kCpu));
    parts_.push_back(std::move(part));
  }
  return absl::OkStatus();
}

absl::Status MessageAssembler::TakeContent(Reader& reader, uint64_t size) {
  if (size > reader.left() || size > total_ - received_) return Malformed();
  received_ += size;
  while (size > 0) {
    const size_t part_bytes = parts_[part_]->bytes();
    const size_t here = std::min<size_t>(size, part_bytes - offset_);
    CopySlices(reader.Take(here),
               static_cast<char*>(parts_[part_]->data()) + offset_);
    size -= here;
    offset_ += here;
    if (offset_ == part_bytes) {
      ++part_;
      offset_ = 0;
    }
  }
  // Make the bytes visible to the handler, which may run in another thread.
  tensor::cpu::FinishStreamCopies();
  return absl::OkStatus();
}

absl::StatusOr<bool> MessageAssembler::Add(::grpc::ByteBuffer& fragment) {
  std::vector<::grpc::Slice> slices;
  if (!fragment.Valid() || !fragment.Dump(&slices).ok()) return Malformed();
  fragment.Clear();
  Reader reader(std::move(slices));
  const bool is_first = !std::exchange(begun_, true);
  while (reader.left() > 0) {
    uint64_t tag = 0;
    uint64_t value = 0;
    if (!reader.ReadVarint(tag) || !reader.ReadVarint(value)) {
      return Malformed();
    }
    const int type = static_cast<int>(tag & 7);
    switch (tag >> 3) {
      case v1::MessageFragment::kPartBytesFieldNumber:
        // Sizes precede content, packed or not.
        if (!is_first || !parts_.empty()) return Malformed();
        if (type == kWireVarint) {
          RETURN_IF_ERROR(AddPart(value));
          break;
        }
        if (type != kWireBytes || value > reader.left()) return Malformed();
        for (const size_t end = reader.left() - value; reader.left() > end;) {
          uint64_t bytes = 0;
          if (!reader.ReadVarint(bytes)) return Malformed();
          RETURN_IF_ERROR(AddPart(bytes));
        }
        break;
      case v1::MessageFragment::kContentFieldNumber:
        if (type != kWireBytes) return Malformed();
        if (parts_.empty()) RETURN_IF_ERROR(Allocate());
        RETURN_IF_ERROR(TakeContent(reader, value));
        break;
      default:
        return Malformed();
    }
  }
  return total_ > 0 && received_ == total_;
}

Payload MessageAssembler::Take() {
  Payload payload;
  for (tensor::StoragePtr& part : parts_) payload.Append(std::move(part));
  parts_.clear();
  ReleaseBudget();
  return payload;
}

}  // namespace hawser::rpc
