// A MessageInterceptor for unit tests, without autograd.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_MESSAGE_INTERCEPTOR_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_MESSAGE_INTERCEPTOR_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/task_local.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// Returns the results that the test sets, and records the messages. For one
// thread.
class FakeMessageInterceptor final : public MessageInterceptor {
 public:
  // Result of OnSend.
  absl::StatusOr<std::optional<AutogradMetadata>> on_send =
      std::optional<AutogradMetadata>();
  // Results of OnReceiveRequest and of OnReceiveReply.
  absl::StatusOr<async::TaskContext> on_request = async::TaskContext();
  absl::Status on_reply;

  // Names of the peers passed to OnSend.
  std::vector<std::string> sent_to;
  // Metadata passed to OnReceiveRequest and to OnReceiveReply.
  std::vector<AutogradMetadata> requests;
  std::vector<AutogradMetadata> replies;

  absl::StatusOr<std::optional<AutogradMetadata>> OnSend(
      const WorkerInfo& peer, std::span<const tensor::Tensor>) override {
    sent_to.push_back(peer.name);
    return on_send;
  }
  absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const WorkerInfo&, const AutogradMetadata& metadata,
      std::span<tensor::Tensor>) override {
    requests.push_back(metadata);
    return on_request;
  }
  absl::Status OnReceiveReply(const WorkerInfo&,
                              const AutogradMetadata& metadata,
                              std::span<tensor::Tensor>) override {
    replies.push_back(metadata);
    return on_reply;
  }
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_MESSAGE_INTERCEPTOR_H_
