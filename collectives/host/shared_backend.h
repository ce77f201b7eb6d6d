// Backend over memory that the ranks share.

#ifndef HAWSER_COLLECTIVES_HOST_SHARED_BACKEND_H_
#define HAWSER_COLLECTIVES_HOST_SHARED_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "collectives/backend.h"
#include "collectives/host/exchange.h"
#include "collectives/host/mailboxes.h"
#include "collectives/host/region.h"
#include "collectives/host/shared_collectives.h"
#include "collectives/host/shared_wait.h"
#include "collectives/reduce_op.h"

namespace hawser::collectives {

// One rank of a group whose ranks have mapped one region.
class SharedBackend final : public Backend {
 public:
  // `name` must be a literal. `memory` keeps the region alive.
  SharedBackend(std::string_view name, std::shared_ptr<void> memory,
                const Region& region, SharedWait::Options options)
      : name_(name),
        memory_(std::move(memory)),
        wait_(region, std::move(options)),
        exchange_(wait_),
        collectives_(exchange_),
        mailboxes_(wait_) {}

  ~SharedBackend() override { wait_.Leave(); }

  std::string_view name() const override { return name_; }

  absl::Status Barrier(async::MonotonicTime deadline) override {
    return collectives_.Barrier(deadline);
  }
  absl::Status Broadcast(MutableBytes data, int root,
                         async::MonotonicTime deadline) override {
    return collectives_.Broadcast(data, root, deadline);
  }
  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         async::MonotonicTime deadline) override {
    return collectives_.AllReduce(pieces, reduction, deadline);
  }
  absl::Status Reduce(ConstBytes input, MutableBytes output,
                      const Reduction& reduction, int root,
                      async::MonotonicTime deadline) override {
    return collectives_.Reduce(input, output, reduction, root, deadline);
  }
  absl::Status AllGather(ConstBytes input,
                         std::span<const MutableBytes> outputs,
                         async::MonotonicTime deadline) override {
    return collectives_.AllGather(input, outputs, deadline);
  }
  absl::Status Gather(ConstBytes input, std::span<const MutableBytes> outputs,
                      int root, async::MonotonicTime deadline) override {
    return collectives_.Gather(input, outputs, root, deadline);
  }
  absl::Status Scatter(std::span<const ConstBytes> inputs, MutableBytes output,
                       int root, async::MonotonicTime deadline) override {
    return collectives_.Scatter(inputs, output, root, deadline);
  }
  absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                             MutableBytes output, const Reduction& reduction,
                             async::MonotonicTime deadline) override {
    return collectives_.ReduceScatter(inputs, output, reduction, deadline);
  }
  absl::Status AllToAll(std::span<const ConstBytes> inputs,
                        std::span<const MutableBytes> outputs,
                        async::MonotonicTime deadline) override {
    return collectives_.AllToAll(inputs, outputs, deadline);
  }
  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline) override {
    return mailboxes_.Send(data, to, tag, deadline);
  }
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline) override {
    return mailboxes_.Receive(data, from, tag, deadline);
  }
  void Abort(const absl::Status& status) override {
    (void)wait_.Abort(status);
    mailboxes_.OnAborted();
  }

 private:
  const std::string_view name_;
  const std::shared_ptr<void> memory_;
  SharedWait wait_;
  Exchange exchange_;
  SharedCollectives collectives_;
  Mailboxes mailboxes_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_SHARED_BACKEND_H_
