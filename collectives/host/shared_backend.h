// Backend over memory that the ranks share.

#ifndef HAWSER_COLLECTIVES_HOST_SHARED_BACKEND_H_
#define HAWSER_COLLECTIVES_HOST_SHARED_BACKEND_H_

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "collectives/forwarding_backend.h"
#include "collectives/host/exchange.h"
#include "collectives/host/mailboxes.h"
#include "collectives/host/region.h"
#include "collectives/host/shared_collectives.h"
#include "collectives/host/shared_wait.h"

namespace hawser::collectives {

// One rank of a group whose ranks have mapped one region.
class SharedBackend final
    : public ForwardingBackend<SharedCollectives, Mailboxes> {
 public:
  // `name` must be a literal. `memory` keeps the region alive.
  SharedBackend(std::string_view name, std::shared_ptr<void> memory,
                const Region& region, SharedWait::Options options)
      : ForwardingBackend(collectives_, mailboxes_),
        name_(name),
        memory_(std::move(memory)),
        wait_(region, std::move(options)),
        exchange_(wait_),
        collectives_(exchange_),
        mailboxes_(wait_) {}

  ~SharedBackend() override { wait_.Leave(); }

  std::string_view name() const override { return name_; }

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
