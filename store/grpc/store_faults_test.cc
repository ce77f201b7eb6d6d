// F8 of docs/reliability.md: lost, duplicated and delayed requests and replies
// of a store server.

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "async/random_source.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/store.grpc.pb.h"
#include "proto/store.pb.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"
#include "store/testing/test_server.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;

constexpr double kRequestLost = 0.25;
constexpr double kReplyLost = 0.25;
constexpr double kRequestTwice = 0.25;
constexpr double kRequestLate = 0.10;

// Proxy between clients and a server that injects faults into calls. A client
// sees a lost message as a lost connection: UNAVAILABLE.
class FaultyForwarder final : public v1::Store::Service {
 public:
  explicit FaultyForwarder(const std::string& server_address)
      : stub_(v1::Store::NewStub(grpc::CreateChannel(
            server_address, grpc::InsecureChannelCredentials()))),
        server_(grpc::ServerBuilder()
                    .RegisterService(this)
                    .AddListeningPort("127.0.0.1:0",
                                      grpc::InsecureServerCredentials(), &port_)
                    .BuildAndStart()) {}

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  int num_faults() const {
    async::MutexLock lock(&mutex_);
    return num_faults_;
  }

 private:
  using Stub = v1::Store::Stub;
  template <class Request, class Reply>
  using StubMethod = grpc::Status (Stub::*)(grpc::ClientContext*,
                                            const Request&, Reply*);

  bool Draw(double chance) {
    async::MutexLock lock(&mutex_);
    const bool drawn = random_.Uniform() < chance;
    num_faults_ += drawn;
    return drawn;
  }

  // Takes the requests held back until now.
  std::vector<std::function<void()>> TakeLate() {
    async::MutexLock lock(&mutex_);
    return std::exchange(late_, {});
  }

  template <class Request, class Reply>
  grpc::Status Send(StubMethod<Request, Reply> method, const Request& request,
                    Reply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    return ((*stub_).*method)(&context, request, reply);
  }

  template <class Request, class Reply>
  grpc::Status Forward(StubMethod<Request, Reply> method,
                       const Request& request, Reply* reply) {
    const grpc::Status lost(grpc::StatusCode::UNAVAILABLE, "lost");
    if (Draw(kRequestLost)) return lost;
    if (Draw(kRequestLate)) {
      async::MutexLock lock(&mutex_);
      late_.push_back([this, method, request] {
        Reply ignored;
        (void)Send(method, request, &ignored);
      });
      return lost;
    }
    if (Draw(kRequestTwice)) (void)Send(method, request, reply);
    reply->Clear();
    const grpc::Status status = Send(method, request, reply);
    // By now other clients have made calls, and the senders of these requests
    // may have retried them.
    for (const std::function<void()>& send : TakeLate()) send();
    return Draw(kReplyLost) ? lost : status;
  }

  grpc::Status Hello(grpc::ServerContext*, const v1::StoreHelloRequest* request,
                     v1::StoreHelloReply* reply) override {
    return Forward(&Stub::Hello, *request, reply);
  }
  grpc::Status Set(grpc::ServerContext*, const v1::StoreSetRequest* request,
                   v1::StoreSetReply* reply) override {
    return Forward(&Stub::Set, *request, reply);
  }
  grpc::Status SetLease(grpc::ServerContext*,
                        const v1::StoreSetLeaseRequest* request,
                        v1::StoreSetLeaseReply* reply) override {
    return Forward(&Stub::SetLease, *request, reply);
  }
  grpc::Status AwaitChange(grpc::ServerContext*,
                           const v1::StoreAwaitChangeRequest* request,
                           v1::StoreAwaitChangeReply* reply) override {
    return Forward(&Stub::AwaitChange, *request, reply);
  }
  grpc::Status Get(grpc::ServerContext*, const v1::StoreGetRequest* request,
                   v1::StoreGetReply* reply) override {
    return Forward(&Stub::Get, *request, reply);
  }
  grpc::Status Add(grpc::ServerContext*, const v1::StoreAddRequest* request,
                   v1::StoreAddReply* reply) override {
    return Forward(&Stub::Add, *request, reply);
  }
  grpc::Status Append(grpc::ServerContext*,
                      const v1::StoreAppendRequest* request,
                      v1::StoreAppendReply* reply) override {
    return Forward(&Stub::Append, *request, reply);
  }
  grpc::Status CompareAndSet(grpc::ServerContext*,
                             const v1::StoreCompareAndSetRequest* request,
                             v1::StoreCompareAndSetReply* reply) override {
    return Forward(&Stub::CompareAndSet, *request, reply);
  }
  grpc::Status Wait(grpc::ServerContext*, const v1::StoreWaitRequest* request,
                    v1::StoreWaitReply* reply) override {
    return Forward(&Stub::Wait, *request, reply);
  }
  grpc::Status Check(grpc::ServerContext*, const v1::StoreCheckRequest* request,
                     v1::StoreCheckReply* reply) override {
    return Forward(&Stub::Check, *request, reply);
  }
  grpc::Status Delete(grpc::ServerContext*,
                      const v1::StoreDeleteRequest* request,
                      v1::StoreDeleteReply* reply) override {
    return Forward(&Stub::Delete, *request, reply);
  }
  grpc::Status NumKeys(grpc::ServerContext*,
                       const v1::StoreNumKeysRequest* request,
                       v1::StoreNumKeysReply* reply) override {
    return Forward(&Stub::NumKeys, *request, reply);
  }

  const std::unique_ptr<Stub> stub_;
  mutable async::Mutex mutex_;
  async::RandomSource random_ ABSL_GUARDED_BY(mutex_){7};
  int num_faults_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void()>> late_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  // Last, because its calls use the other members.
  const std::unique_ptr<grpc::Server> server_;
};

// Actions of one client and the replies that it got.
struct Outcome {
  std::vector<int64_t> added;
  std::vector<int64_t> appended;
  int64_t swapped = 0;
};

constexpr int kClients = 16;
constexpr int kRounds = 8;
constexpr int kChanges = kClients * kRounds;

Outcome MakeChanges(Store& store, int client) {
  Outcome outcome;
  const std::string own = absl::StrCat("own", client);
  for (int round = 0; round < kRounds; ++round) {
    const auto added = store.Add("sum", 1);
    EXPECT_THAT(added, IsOk());
    outcome.added.push_back(added.value_or(0));
    const auto appended = store.Append("text", "x");
    EXPECT_THAT(appended, IsOk());
    outcome.appended.push_back(appended.value_or(0));
    // A number that each client increments by compare-and-set.
    const std::string before = store.Get("count").value_or("");
    int64_t count = 0;
    EXPECT_TRUE(absl::SimpleAtoi(before, &count)) << before;
    const auto swap =
        store.CompareAndSet("count", before, absl::StrCat(count + 1));
    EXPECT_THAT(swap, IsOk());
    if (swap.ok()) outcome.swapped += swap->swapped;
    // A late request of an earlier round would be detected.
    EXPECT_THAT(store.Set(own, absl::StrCat(round)), IsOk());
    EXPECT_THAT(store.Get(own), IsOkAndHolds(absl::StrCat(round)));
    EXPECT_THAT(store.SetLease(own, "lease", absl::Hours(1)), IsOk());
    EXPECT_THAT(
        store.WhenChanged({{own, absl::StrCat(round)}, {"sum", ""}}).Wait(),
        IsOkAndHolds(testing::Contains("lease")));
    EXPECT_THAT(store.Delete(own), IsOkAndHolds(true));
    EXPECT_THAT(store.Check(std::vector{own}), IsOkAndHolds(false));
  }
  return outcome;
}

// The expected values after the changes: 1 to `count`, in any order.
std::vector<int64_t> EachOnce(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

TEST(GrpcStoreFaultsTest, F8EachChangeIsAppliedOnce) {
  const auto server = MustStart();
  FaultyForwarder forwarder(server->address());
  const auto witness = MustConnect(server->address());
  ASSERT_THAT(witness->Set("count", "0"), IsOk());
  std::vector<Outcome> outcomes(kClients);
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      const auto store = MustConnect(forwarder.address());
      outcomes[client] = MakeChanges(*store, client);
    });
  }
  for (std::thread& client : clients) client.join();

  std::vector<int64_t> added;
  std::vector<int64_t> appended;
  int64_t swapped = 0;
  for (const Outcome& outcome : outcomes) {
    added.insert(added.end(), outcome.added.begin(), outcome.added.end());
    appended.insert(appended.end(), outcome.appended.begin(),
                    outcome.appended.end());
    swapped += outcome.swapped;
  }
  const std::vector<int64_t> each_once = EachOnce(kChanges);
  EXPECT_THAT(added, testing::UnorderedElementsAreArray(each_once));
  EXPECT_THAT(appended, testing::UnorderedElementsAreArray(each_once));
  EXPECT_THAT(witness->Get("sum"), IsOkAndHolds(absl::StrCat(kChanges)));
  EXPECT_THAT(witness->Get("text"), IsOkAndHolds(std::string(kChanges, 'x')));
  EXPECT_THAT(witness->Get("count"), IsOkAndHolds(absl::StrCat(swapped)));
  EXPECT_GT(swapped, 0);
  EXPECT_GT(forwarder.num_faults(), kChanges);
}

}  // namespace
}  // namespace hawser::store
