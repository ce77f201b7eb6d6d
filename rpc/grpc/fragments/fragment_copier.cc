#include "rpc/grpc/fragments/fragment_copier.h"

#include <cstring>
#include <thread>
#include <utility>

#include "tensor/backend/cpu/vector_copy.h"

namespace hawser::rpc {
namespace {

constexpr size_t kMinStreamed = size_t{4} << 10;

}  // namespace

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

FragmentCopy::FragmentCopy(std::vector<::grpc::Slice> from,
                           tensor::StoragePtr to, size_t offset)
    : offset_(offset), from_(std::move(from)), to_(std::move(to)) {}

void FragmentCopy::EndLocked() {
  from_.clear();
  to_ = nullptr;
  ended_.store(true, std::memory_order_release);
}

void FragmentCopy::Finish() {
  if (ended_.load(std::memory_order_acquire)) return;
  async::MutexLock lock(&mutex_);
  if (to_ == nullptr) return;
  CopySlices(from_, static_cast<char*>(to_->data()) + offset_);
  tensor::cpu::FinishStreamCopies();
  EndLocked();
}

void FragmentCopy::Drop() {
  if (ended_.load(std::memory_order_acquire)) return;
  async::MutexLock lock(&mutex_);
  EndLocked();
}

FragmentCopier::FragmentCopier(int num_threads)
    : max_copies_(std::thread::hardware_concurrency() == 1 ? 0 : num_threads),
      threads_(std::in_place,
               async::ThreadPoolOptions{.num_threads = num_threads,
                                        .name = "rpc-copy"}),
      executor_(*threads_) {}

FragmentCopier::FragmentCopier(async::Executor& executor, int max_copies)
    : max_copies_(max_copies), executor_(executor) {}

bool FragmentCopier::Reserve() {
  int reserved = num_reserved_.load(std::memory_order_relaxed);
  while (reserved < max_copies_) {
    if (num_reserved_.compare_exchange_weak(reserved, reserved + 1,
                                            std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void FragmentCopier::Begin(std::shared_ptr<FragmentCopy> copy) {
  executor_.Post([this, copy = std::move(copy)] {
    copy->Finish();
    num_reserved_.fetch_sub(1, std::memory_order_relaxed);
  });
}

}  // namespace hawser::rpc
