// Any bytes as requests of two workers for the clocks of two tables, one after
// the other: a byte that chooses method and worker, the length of the request,
// and the request.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "async/future.h"
#include "proto/ps.pb.h"
#include "ps/service_methods.h"
#include "ps/storage/consistency.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table_service.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/fakes/fake_service_host.h"

namespace hawser::ps {
namespace {

constexpr int kNumWorkers = 2;

void Check(const absl::Status& status) {
  HAWSER_CHECK(!absl::IsInternal(status) && !absl::IsUnknown(status))
      << status.message();
}

class Server {
 public:
  Server() {
    HAWSER_CHECK(service_.Start(host_).ok()) << "the service";
    for (int i = 0; i < kNumWorkers; ++i) {
      workers_.push_back(rpc::FakeServiceHost::MakeWorker(i + 1));
      host_.AddWorker(workers_.back());
    }
    Create("b", Consistency::BoundedStaleness(1));
    Create("s", Consistency::Synchronous());
  }
  ~Server() {
    service_.Interrupt();
    host_.executor().RunAll();
    for (const async::Future<void>& reply : replies_) {
      HAWSER_CHECK(reply.ready()) << "a request that was not ended";
      Check(reply.result());
    }
    service_.Stop();
  }

  void Serve(uint8_t choice, std::span<const uint8_t> body) {
    const rpc::WorkerInfo& worker = workers_[choice / 4 % kNumWorkers];
    switch (choice % 4) {
      case 0:
        Send(kJoinClockMethod, worker, body);
        break;
      case 1:
        Send(kAdvanceClockMethod, worker, body);
        break;
      case 2:
        Send(kLeaveClockMethod, worker, body);
        break;
      default:
        service_.OnWorkerLost(worker, absl::UnavailableError("it is lost"));
    }
    host_.executor().RunAll();
  }

 private:
  void Create(const std::string& name, Consistency consistency) {
    v1::CreateTableRequest request;
    *request.mutable_table() = ToProto(
        TableSpec{.name = name, .width = 1, .consistency = consistency});
    request.mutable_shards()->set_num_shards(1024);
    const auto created =
        host_.Receive(kCreateTableMethod, workers_[0], request).Wait();
    HAWSER_CHECK(created.ok()) << created.status().message();
  }

  template <class Request, class Reply>
  void Send(const rpc::ServiceMethod<Request, Reply>& method,
            const rpc::WorkerInfo& worker, std::span<const uint8_t> body) {
    Request request;
    if (!request.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
      return;
    }
    replies_.push_back(
        host_.Receive(method, worker, request)
            .Then([](const absl::StatusOr<rpc::Message<Reply>>& reply) {
              return reply.status();
            }));
  }

  rpc::FakeServiceHost host_;
  TableService service_;
  std::vector<rpc::WorkerInfo> workers_;
  std::vector<async::Future<void>> replies_;
};

}  // namespace
}  // namespace hawser::ps

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> input(data, size);
  hawser::ps::Server server;
  while (input.size() >= 2) {
    const size_t length = std::min<size_t>(input[1], input.size() - 2);
    server.Serve(input[0], input.subspan(2, length));
    input = input.subspan(2 + length);
  }
  return 0;
}
