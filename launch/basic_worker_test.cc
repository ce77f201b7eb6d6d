#include "launch/basic_worker.h"

#include <memory>
#include <utility>

#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "rpc/stream/stream_service.h"
#include "rref/rref_service.h"
#include "store/hash/store.h"
#include "store/store.h"

namespace hawser::launch {
namespace {

using async::IsOk;

WorkerOptions AloneWith(store::Store& store) {
  WorkerOptions options;
  options.identity = {.rank = 0, .world_size = 1};
  options.meeting_place.store = &store;
  return options;
}

TEST(BasicWorkerTest, HasOnlyTheServicesOfItsOptions) {
  store::HashStore store;
  WorkerOptions options = AloneWith(store);
  options.services.push_back(std::make_unique<rpc::StreamService>());
  auto worker = BasicWorker::Start(std::move(options));
  ASSERT_THAT(worker, IsOk());
  EXPECT_NE((*worker)->agent().service<rpc::StreamService>(), nullptr);
  EXPECT_EQ((*worker)->agent().service<rref::RRefService>(), nullptr);
  EXPECT_THAT((*worker)->Shutdown(), IsOk());
}

TEST(BasicWorkerTest, AWorkerHasServicesOfItsOwn) {
  store::HashStore store;
  auto worker = Worker::Start(AloneWith(store));
  ASSERT_THAT(worker, IsOk());
  EXPECT_NE((*worker)->agent().service<rpc::StreamService>(), nullptr);
  EXPECT_NE((*worker)->agent().service<rref::RRefService>(), nullptr);
  EXPECT_THAT((*worker)->Shutdown(), IsOk());
}

}  // namespace
}  // namespace hawser::launch
