// A member of a job that sends and replies whatever the input of a fuzz target
// says.

#ifndef HAWSER_TESTS_FUZZ_HOSTILE_MEMBER_H_
#define HAWSER_TESTS_FUZZ_HOSTILE_MEMBER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bazel/fuzz/fuzz_input.h"
#include "bazel/fuzz/message_maker.h"
#include "google/protobuf/message.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/worker_info.h"
#include "rpc/inproc/network.h"
#include "rpc/membership/membership_log.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/message_interceptor.h"
#include "store/store.h"

namespace hawser::tests {

// Worker "w1" of rank 1, without an agent: it joins by the store as an agent
// does, calls the methods of the workers' services with messages made from the
// input, and replies to calls in the same way. It learns the ids in the
// messages that it gets, and uses them in its own.
//
// For one thread.
class HostileMember {
 public:
  struct Options {
    fuzz::FuzzInput* input = nullptr;
    // All must outlive the member.
    rpc::InprocNetwork* network = nullptr;
    store::Store* store = nullptr;
    // The functions that it calls at the victim.
    const rpc::FunctionRegistry* functions = nullptr;
  };

  explicit HostileMember(Options options);
  ~HostileMember();
  HostileMember(const HostileMember&) = delete;
  HostileMember& operator=(const HostileMember&) = delete;

  const rpc::WorkerInfo& info() const { return info_; }

  // The worker that it calls. Call once.
  void SetVictim(const rpc::WorkerInfo& victim);
  // An id of an object of the victim that its messages may name.
  void LearnReference(const google::protobuf::Message& id) { maker_.Offer(id); }
  void LearnContext(uint64_t context);

  // Starts a call of a method that the input chooses.
  void CallMethod();
  // Cancels one of its calls.
  void CancelCall();
  // Replies to one of the calls to which it did not reply at once.
  void ReplyLater();
  // Number of methods that CallMethod chooses from.
  static size_t num_methods();

 private:
  void Handle(const google::protobuf::Message& reply_type,
              std::unique_ptr<rpc::IncomingCall> call);
  void Reply(const google::protobuf::Message& reply_type,
             rpc::IncomingCall& call);
  void LearnFrom(rpc::IncomingCall& call);
  void OfferContexts();
  void OfferMessageIds();
  // Chooses a function, and arguments that mostly fit.
  void FillFunction(google::protobuf::Message& request);
  std::string MakeArguments(std::string_view signature);
  std::optional<rpc::AutogradMetadata> MakeMetadata();
  rpc::Payload Encode(std::string body, std::string header);

  struct HeldCall {
    const google::protobuf::Message* reply_type = nullptr;
    std::unique_ptr<rpc::IncomingCall> call;
  };

  fuzz::FuzzInput& input_;
  fuzz::MessageMaker maker_;
  const rpc::FunctionRegistry& functions_;
  rpc::TransferCounters counters_;
  rpc::WorkerInfo info_;
  rpc::WorkerInfo victim_;
  std::unique_ptr<rpc::Transport> transport_;
  std::shared_ptr<rpc::Connection> connection_;
  std::deque<HeldCall> held_;
  std::vector<rpc::Connection::CallId> calls_;
  uint64_t last_call_ = 0;
  // Ids of contexts and forward messages: its own, and those of the victim that
  // it learned last.
  std::array<uint64_t, 6> contexts_{};
  size_t next_context_ = 0;
  std::array<uint64_t, 6> message_ids_{};
  size_t next_message_id_ = 0;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FUZZ_HOSTILE_MEMBER_H_
