// Fuzz test: the records and the log of a job in its store, of which an
// attacker writes any bytes while two workers read them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/clock.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "bazel/fuzz/fuzz_input.h"
#include "bazel/fuzz/message_maker.h"
#include "proto/group_start.pb.h"
#include "proto/rpc.pb.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/group_start.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/membership.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/testing/simulated_store_link.h"
#include "store/hash/store.h"

namespace hawser::tests {
namespace {

constexpr char kJob[] = "job";
constexpr absl::Duration kTick = absl::Milliseconds(250);
constexpr uint64_t kNumIncarnations = 6;

rpc::WorkerInfo Worker(int rank) {
  return {.name = absl::StrCat("w", rank),
          .id = rpc::WorkerId(rank),
          .incarnation = rpc::Incarnation{static_cast<uint64_t>(rank) + 1},
          .address = "inproc:1"};
}

// A worker that reads the log.
class Reader {
 public:
  Reader(int rank, async::Clock* clock, async::Executor* executor,
         rpc::MembershipLog* log)
      : membership_({.self = Worker(rank),
                     .liveness = {},
                     .clock = clock,
                     .executor = executor,
                     .log = log},
                    [this](const rpc::MemberEvent& event) { Apply(event); }) {
    membership_.Start();
  }

  rpc::Membership& membership() { return membership_; }
  // What it has reported: of each worker whether it departed.
  const std::map<rpc::Incarnation, bool>& departed() const { return departed_; }
  // Events after the first, that this worker and the other have joined.
  const std::vector<std::string>& later_events() const { return events_; }

 private:
  void Apply(const rpc::MemberEvent& event) {
    using Kind = rpc::MemberEvent::Kind;
    const rpc::Incarnation incarnation = event.worker.incarnation;
    HAWSER_CHECK(event.worker.id.valid());
    HAWSER_CHECK(rpc::ValidateWorkerName(event.worker.name).ok());
    if (event.kind == Kind::kJoined) {
      HAWSER_CHECK(departed_.emplace(incarnation, false).second);
    } else {
      // Joined, and not departed before.
      const auto found = departed_.find(incarnation);
      HAWSER_CHECK(found != departed_.end());
      HAWSER_CHECK(!std::exchange(found->second, true));
    }
    if (rpc::ToNumber(incarnation) <= 2 && event.kind == Kind::kJoined) return;
    events_.push_back(absl::StrCat(static_cast<int>(event.kind), " ",
                                   rpc::ToNumber(incarnation), " ",
                                   event.worker.name, " ", event.reason));
  }

  std::map<rpc::Incarnation, bool> departed_;
  std::vector<std::string> events_;
  rpc::Membership membership_;
};

class Run {
 public:
  explicit Run(fuzz::FuzzInput input) : input_(input), maker_(&input_) {
    for (int rank = 0; rank < 2; ++rank) {
      HAWSER_CHECK(records_.Register(Worker(rank), {}).ok());
      HAWSER_CHECK(
          log_.Renew(Worker(rank).incarnation, 0, absl::Hours(1)).ok());
      HAWSER_CHECK(log_.Append(rpc::JoinedEvent(Worker(rank))).ok());
    }
    for (int rank = 0; rank < 2; ++rank) {
      readers_[static_cast<size_t>(rank)] =
          std::make_unique<Reader>(rank, &clock_, &executor_, &log_);
    }
    executor_.RunAll();
    std::vector<uint64_t> incarnations;
    for (uint64_t i = 1; i <= kNumIncarnations; ++i) incarnations.push_back(i);
    for (const char* field : {"hawser.v1.WorkerRecord.incarnation",
                              "hawser.v1.WorkerDeparture.incarnation",
                              "hawser.v1.WorkerDeparture.reporter"}) {
      maker_.OfferNumbers(field, incarnations);
    }
    maker_.OfferStrings("hawser.v1.WorkerRecord.name", {"w0", "w1", "w2"});
  }

  void Play() {
    while (!input_.empty()) {
      Step();
      executor_.RunAll();
      CheckThatReadersAgree();
    }
    for (int i = 0; i < 20; ++i) Advance();
    CheckThatReadersAgree();
    const uint64_t num_events = readers_[0]->membership().num_events();
    HAWSER_CHECK(num_events >= readers_.size()) << num_events;
    HAWSER_CHECK(has_raw_bytes_ ||
                 readers_[1]->membership().num_events() == num_events)
        << num_events;
    for (const auto& reader : readers_) reader->membership().Stop();
  }

 private:
  void Advance() {
    clock_.AdvanceBy(kTick);
    executor_.RunAll();
  }

  std::string Segment() {
    return absl::StrCat("rpc/job/members/", 1 + input_.Below(3));
  }

  // A valid event as long as half of a segment, so that few fill one.
  void AppendLongEvent() {
    v1::MembershipEvent event = maker_.Make<v1::MembershipEvent>();
    if (event.has_lost()) {
      event.mutable_lost()->set_reason(
          std::string(rpc::MembershipLog::kSegmentBytes / 2, 'x'));
    }
    HAWSER_CHECK(log_.Append(event).ok());
  }

  void SetRecord() {
    const char* const keys[] = {
        "name/w0", "name/w2",      "rank/0",        "rank/1",
        "rank/2",  "start/roster", "start/started", "lease/0000000000000001"};
    const std::string key =
        absl::StrCat("rpc/job/", keys[input_.Below(std::size(keys))]);
    std::string value;
    switch (input_.Below(4)) {
      case 0:
        value = maker_.Make<v1::WorkerRecord>().SerializeAsString();
        break;
      case 1:
        value = maker_.Make<v1::GroupRoster>().SerializeAsString();
        break;
      case 2:
        value = rpc::ToString(rpc::Incarnation{1 + input_.Below(3)});
        break;
      default:
        value = std::string(input_.Bytes());
        break;
    }
    HAWSER_CHECK(store_.Set(key, value).ok());
  }

  // A worker that joins, finds others and starts with them.
  void UseRecords() {
    const int rank = static_cast<int>(input_.Below(4));
    switch (input_.Below(4)) {
      case 0:
        (void)records_.FindByName(Worker(rank).name, absl::ZeroDuration());
        break;
      case 1:
        (void)records_.FindById(rpc::WorkerId(rank), absl::ZeroDuration());
        break;
      case 2:
        (void)records_.Register(Worker(rank), {});
        break;
      default: {
        rpc::GroupStart start(
            {.self = Worker(rank),
             .world_size = 1 + static_cast<int>(input_.Below(3)),
             .job = kJob,
             .store = &store_,
             .records = &records_,
             .on_roster = [](const auto&) {}});
        (void)start.Run(async::MonotonicTime());
        break;
      }
    }
  }

  void Step() {
    switch (input_.Below(16)) {
      case 0:
        // From here on a reader may stop before events that the other has read.
        has_raw_bytes_ = true;
        HAWSER_CHECK(
            store_.Append(Segment(), std::string(input_.Bytes())).ok());
        break;
      case 1:
        // From here on readers may have seen other bytes.
        has_raw_bytes_ = true;
        rewritten_ = true;
        HAWSER_CHECK(store_.Set(Segment(), std::string(input_.Bytes())).ok());
        break;
      case 2:
        AppendLongEvent();
        break;
      case 3:
        (void)log_.DropLease(rpc::Incarnation{1 + input_.Below(4)});
        break;
      case 4:
        (void)log_.Renew(rpc::Incarnation{1 + input_.Below(4)}, input_.Byte(),
                         absl::Seconds(input_.Below(8)));
        break;
      case 5:
        readers_[input_.Below(2)]->membership().ReportSuspect(
            Worker(static_cast<int>(input_.Below(5))),
            std::string(input_.Bytes()));
        break;
      case 6:
        readers_[input_.Below(2)]->membership().CatchUp([] {});
        break;
      case 7:
      case 8:
        SetRecord();
        break;
      case 9:
      case 10:
        UseRecords();
        break;
      case 11:
        for (size_t i = 0; i <= input_.Below(16); ++i) Advance();
        break;
      default:
        HAWSER_CHECK(log_.Append(maker_.Make<v1::MembershipEvent>()).ok());
        break;
    }
  }

  // One of them may have read further.
  void CheckThatReadersAgree() const {
    if (rewritten_) return;
    const std::vector<std::string>& a = readers_[0]->later_events();
    const std::vector<std::string>& b = readers_[1]->later_events();
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      HAWSER_CHECK(a[i] == b[i]) << a[i] << " and " << b[i];
    }
  }

  fuzz::FuzzInput input_;
  fuzz::MessageMaker maker_;
  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  store::HashStore hash_store_{{.clock = &clock_}};
  // Does not wait.
  rpc::SimulatedStoreLink store_{&hash_store_};
  rpc::MembershipLog log_{&store_, kJob};
  rpc::WorkerDirectory records_{&store_, kJob};
  std::array<std::unique_ptr<Reader>, 2> readers_;
  bool has_raw_bytes_ = false;
  bool rewritten_ = false;
};

}  // namespace
}  // namespace hawser::tests

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::tests::Run(hawser::fuzz::FuzzInput(data, size)).Play();
  return 0;
}
