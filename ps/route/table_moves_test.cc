#include "ps/route/table_moves.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/table_spec.h"
#include "ps/table_route.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/fakes/fake_service_host.h"

namespace hawser::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Handle final : public TableFollower {
 public:
  Handle(std::string table, TableRoute route)
      : table_(std::move(table)), route_(std::move(route)) {}

  const std::string& table() const override { return table_; }
  TableRoute route() const override { return route_; }
  void OnTableMoved(const RecordedTable& record) override {
    told.push_back(record.route.version);
    if (follows) route_ = record.route;
  }

  std::vector<int64_t> told;
  // False: it cannot use the record.
  bool follows = true;

 private:
  const std::string table_;
  TableRoute route_;
};

class TableMovesTest : public testing::Test {
 protected:
  // A watch that was started.
  struct Started {
    std::vector<TableVersion> tables;
    async::Promise<std::vector<RecordedTable>> moved;
    bool cancelled = false;
  };

  std::shared_ptr<Handle> Add(const std::string& table,
                              std::vector<std::string> servers) {
    auto handle =
        std::make_shared<Handle>(table, TableRoute{1, std::move(servers)});
    moves_->Add(handle);
    host_.executor().RunAll();
    return handle;
  }
  void Lose(const rpc::WorkerInfo& worker) {
    host_.LoseWorker(worker);
    moves_->OnWorkerLost(worker.name);
  }
  void Move(const std::string& table, TableRoute route) {
    RecordedTable record{std::move(route), TableSpec{.name = table}};
    watches_.back()->moved.Set(std::vector<RecordedTable>{record});
    host_.executor().RunAll();
  }
  // Those that have not ended.
  std::vector<const Started*> Watches() const {
    std::vector<const Started*> watches;
    for (const auto& watch : watches_) {
      if (!watch->cancelled && !watch->moved.future().ready()) {
        watches.push_back(watch.get());
      }
    }
    return watches;
  }

  rpc::FakeServiceHost host_;
  std::vector<std::unique_ptr<Started>> watches_;
  const std::shared_ptr<TableMoves> moves_ = std::make_shared<TableMoves>(
      host_, [this](std::vector<TableVersion> tables) {
        auto& started = *watches_.emplace_back(std::make_unique<Started>());
        started.tables = std::move(tables);
        started.moved.OnCancel([&started] { started.cancelled = true; });
        return started.moved.future();
      });
};

TEST_F(TableMovesTest, OneWatchServesAllHandles) {
  std::vector<std::shared_ptr<Handle>> handles;
  for (int i = 0; i < 300; ++i) {
    handles.push_back(
        Add(absl::StrCat("t", i % 200), {"w2", absl::StrCat("w", 3 + i % 2)}));
  }
  EXPECT_THAT(watches_, IsEmpty());
  Lose(rpc::FakeServiceHost::MakeWorker(3));
  Lose(rpc::FakeServiceHost::MakeWorker(9));
  host_.executor().RunAll();
  ASSERT_EQ(watches_.size(), 1u);
  EXPECT_EQ(watches_[0]->tables.size(), 100u);
  Lose(rpc::FakeServiceHost::MakeWorker(4));
  host_.executor().RunAll();
  ASSERT_EQ(Watches().size(), 1u);
  EXPECT_EQ(Watches()[0]->tables.size(), 200u);
}

TEST_F(TableMovesTest, AllHandlesOfTheTableAreTold) {
  const auto first = Add("t", {"w2"});
  const auto second = Add("t", {"w2"});
  const auto other = Add("u", {"w2"});
  Lose(rpc::FakeServiceHost::MakeWorker(2));
  host_.executor().RunAll();
  Move("t", {2, {"w3"}});
  EXPECT_THAT(first->told, ElementsAre(2));
  EXPECT_THAT(second->told, ElementsAre(2));
  EXPECT_THAT(other->told, IsEmpty());
  // The other table still needs one.
  ASSERT_EQ(Watches().size(), 1u);
  EXPECT_EQ(Watches()[0]->tables.size(), 1u);
  EXPECT_EQ(Watches()[0]->tables[0].table, "u");
  // The new server was lost before this worker knew of the move.
  Lose(rpc::FakeServiceHost::MakeWorker(3));
  host_.executor().RunAll();
  ASSERT_EQ(Watches().size(), 1u);
  EXPECT_EQ(Watches()[0]->tables[0].version, 2);
}

TEST_F(TableMovesTest, AHandleOfALostServerIsWatchedAtOnce) {
  Lose(rpc::FakeServiceHost::MakeWorker(2));
  host_.executor().RunAll();
  EXPECT_THAT(watches_, IsEmpty());
  const auto handle = Add("t", {"w2"});
  EXPECT_EQ(Watches().size(), 1u);
}

TEST_F(TableMovesTest, AMoveThatAHandleCannotUseIsToldOnce) {
  const auto handle = Add("t", {"w2"});
  handle->follows = false;
  Lose(rpc::FakeServiceHost::MakeWorker(2));
  host_.executor().RunAll();
  Move("t", {2, {"w3"}});
  EXPECT_THAT(handle->told, ElementsAre(2));
  ASSERT_EQ(Watches().size(), 1u);
  EXPECT_EQ(Watches()[0]->tables[0].version, 2);
}

TEST_F(TableMovesTest, TheWatchEndsWhenTheServerIsBack) {
  const auto handle = Add("t", {"w2"});
  const rpc::WorkerInfo lost = rpc::FakeServiceHost::MakeWorker(2);
  host_.AddWorker(lost);
  Lose(lost);
  host_.executor().RunAll();
  // A reply of another server.
  moves_->OnReply();
  host_.executor().RunAll();
  EXPECT_EQ(Watches().size(), 1u);
  rpc::WorkerInfo restarted = lost;
  restarted.incarnation = rpc::Incarnation{5000};
  host_.AddWorker(restarted);
  moves_->OnReply();
  host_.executor().RunAll();
  EXPECT_EQ(Watches().size(), 1u) << "within the interval";
  host_.clock().AdvanceBy(TableMoves::kReplyInterval);
  moves_->OnReply();
  host_.executor().RunAll();
  EXPECT_THAT(Watches(), IsEmpty());
  EXPECT_EQ(watches_.size(), 1u);
  moves_->OnReply();
  EXPECT_EQ(host_.executor().num_queued(), 0u);
}

TEST_F(TableMovesTest, TheWatchEndsWithTheLastHandle) {
  auto handle = Add("t", {"w2"});
  Lose(rpc::FakeServiceHost::MakeWorker(2));
  host_.executor().RunAll();
  EXPECT_EQ(Watches().size(), 1u);
  handle.reset();
  moves_->OnRemoved();
  host_.executor().RunAll();
  EXPECT_THAT(Watches(), IsEmpty());
}

TEST_F(TableMovesTest, StopEndsTheWatch) {
  const auto handle = Add("t", {"w2"});
  Lose(rpc::FakeServiceHost::MakeWorker(2));
  host_.executor().RunAll();
  moves_->Stop();
  EXPECT_THAT(Watches(), IsEmpty());
  Lose(rpc::FakeServiceHost::MakeWorker(3));
  EXPECT_EQ(host_.executor().num_queued(), 0u);
}

}  // namespace
}  // namespace hawser::ps
