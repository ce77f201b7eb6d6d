#include "collectives/host/backend.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/random_source.h"
#include "async/status_macros.h"
#include "collectives/host/region.h"
#include "collectives/host/shared_backend.h"
#include "fs/unique_fd.h"
#include "ipc/peer_process.h"
#include "ipc/shared_memory.h"
#include "proto/collectives.pb.h"
#include "store/barrier.h"
#include "telemetry/log.h"

namespace hawser::collectives {
namespace {

using ipc::PeerProcess;
using ipc::SharedMemory;

// A wait for other ranks that is worth a line in the log.
constexpr absl::Duration kNoteAfter = absl::Seconds(2);

int NumCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores)
                                                          : 1;
}

// The memory of the group, and the other ranks' processes.
struct HostMemory {
  explicit HostMemory(SharedMemory of) : memory(std::move(of)) {}

  SharedMemory memory;
  // Null for ranks of this process.
  std::vector<std::shared_ptr<const PeerProcess>> processes;
};

// One rank, while the group meets.
class Meeting {
 public:
  Meeting(store::Store& store, int rank, int size, absl::Duration timeout,
          const HostOptions& options)
      : rank_(rank),
        size_(size),
        options_(options),
        layout_(Region::LayoutOf(size)),
        deadline_(async::AddDelay(std::chrono::steady_clock::now(), timeout)),
        ranks_(&store, "ranks", timeout),
        mapped_(&store, "mapped", timeout) {
    for (int other = 0; other < size; ++other) {
      participants_.push_back(
          {.id = absl::StrCat(other), .label = NameOf(other)});
    }
  }

  absl::StatusOr<std::unique_ptr<Backend>> Run() {
    ASSIGN_OR_RETURN(const v1::HostGroup group, Meet());
    absl::Status status = memory_ == nullptr ? Map(group) : absl::OkStatus();
    if (status.ok()) status = Watch(group);
    RETURN_IF_ERROR(MeetMapped(status));
    const std::shared_ptr<HostMemory> memory = memory_;
    return std::make_unique<SharedBackend>(
        "host", memory, region(),
        SharedWait::Options{.rank = rank_,
                            .crowded = size_ > NumCores(),
                            .check_alive =
                                [memory](int rank, const std::string& name) {
                                  return CheckAlive(*memory, rank, name);
                                },
                            .numbers = options_.numbers,
                            .late_error = options_.late_error});
  }

 private:
  static absl::Status CheckAlive(const HostMemory& memory, int rank,
                                 const std::string& name) {
    const auto& process = memory.processes[static_cast<size_t>(rank)];
    if (process == nullptr || !process->HasEnded()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(name, " (process ", process->pid(), ") has died"));
  }

  Region region() const {
    return {static_cast<std::byte*>(memory_->memory.data()), layout_};
  }

  std::string NameOf(int rank) const {
    const auto index = static_cast<size_t>(rank);
    return absl::StrCat(
        "rank ", options_.numbers.empty() ? rank : options_.numbers[index]);
  }

  absl::Duration TimeLeft() const {
    return std::max(
        absl::ZeroDuration(),
        async::TimeBetween(std::chrono::steady_clock::now(), deadline_));
  }

  absl::StatusOr<v1::HostGroup> Meet() {
    v1::HostRank self;
    self.set_host(NameOfHost());
    self.set_pid(getpid());
    ASSIGN_OR_RETURN(const uint64_t start_time,
                     PeerProcess::StartTimeOf(getpid()));
    self.set_start_time(start_time);
    v1::HostGroup group;
    ASSIGN_OR_RETURN(const std::string result,
                     Pass(ranks_, self.SerializeAsString(),
                          [&](const std::vector<std::string>& payloads)
                              -> absl::StatusOr<std::string> {
                            RETURN_IF_ERROR(MakeGroup(payloads, group));
                            return group.SerializeAsString();
                          }));
    if (!group.ParseFromString(result) ||
        (group.error().empty() && group.ranks_size() != size_)) {
      return absl::DataLossError(
          "the store has an unreadable record of the group");
    }
    if (!group.error().empty()) {
      return absl::FailedPreconditionError(group.error());
    }
    return group;
  }

  // Rank 0 collects what all ranks say and answers with `result`; the others
  // get the answer.
  template <class MakeResult>
  absl::StatusOr<std::string> Pass(store::Barrier& barrier,
                                   const std::string& payload,
                                   const MakeResult& make_result) {
    RETURN_IF_ERROR(
        barrier.Arrive(participants_[static_cast<size_t>(rank_)], payload));
    if (rank_ != 0) return Await(barrier, barrier.WhenComplete());
    ASSIGN_OR_RETURN(const std::vector<std::string> payloads,
                     Await(barrier, barrier.WhenAllArrived(participants_)));
    ASSIGN_OR_RETURN(std::string result, make_result(payloads));
    RETURN_IF_ERROR(barrier.Complete(result));
    return result;
  }

  // Waits for the other ranks, and says in the log for which ones if they do
  // not come soon.
  template <class T>
  absl::StatusOr<T> Await(store::Barrier& barrier, async::Future<T> future) {
    (void)future.WaitFor(std::min(kNoteAfter, TimeLeft()));
    if (!future.ready() && TimeLeft() > absl::ZeroDuration()) {
      const std::string missing = Missing(barrier);
      if (!missing.empty()) {
        telemetry::Log(telemetry::LogSeverity::kInfo,
                       absl::StrCat(NameOf(rank_), " of a process group of ",
                                    size_, " waits for ", missing));
      }
      (void)future.WaitFor(TimeLeft());
    }
    // It may have become ready after the wait.
    if (future.ready()) return future.result();
    future.Cancel();
    const std::string missing = Missing(barrier);
    return absl::DeadlineExceededError(
        missing.empty()
            ? absl::StrCat("all ranks of the group of ", size_,
                           " have come, but not all went on in time, or the "
                           "store does not reply")
            : absl::StrCat("these have not joined the group of ", size_,
                           " in time: ", missing));
  }

  // The ranks that have not come, such as "rank 1, rank 3". Empty if all have,
  // or if the store does not reply.
  std::string Missing(store::Barrier& barrier) const {
    const absl::StatusOr<std::vector<std::string>> missing =
        barrier.Missing(participants_);
    return missing.ok() ? absl::StrJoin(*missing, ", ") : "";
  }

  absl::Status MakeGroup(const std::vector<std::string>& payloads,
                         v1::HostGroup& group) {
    for (const std::string& payload : payloads) {
      if (group.add_ranks()->ParseFromString(payload)) continue;
      group.Clear();
      group.set_error("the store has an unreadable record of a rank");
      return absl::OkStatus();
    }
    for (int rank = 1; rank < size_; ++rank) {
      if (group.ranks(rank).host() == group.ranks(0).host()) continue;
      group.Clear();
      group.set_error(
          absl::StrCat(NameOf(rank),
                       " does not run on the machine, in the pid namespace or "
                       "as the user of ",
                       NameOf(0), ": use another backend"));
      return absl::OkStatus();
    }
    auto created =
        SharedMemory::Create("hawser collectives", Region::Bytes(layout_));
    if (!created.ok()) {
      group.Clear();
      group.set_error(absl::StrCat(NameOf(0), ": ",
                                   std::string(created.status().message())));
      return absl::OkStatus();
    }
    memory_ = std::make_shared<HostMemory>(std::move(created->first));
    descriptor_ = std::move(created->second);
    async::RandomSource random = async::RandomSource::FromEntropy();
    RegionHeader& header = region().header();
    for (uint64_t& part : header.key) part = random.Next();
    group.set_key_high(header.key[0]);
    group.set_key_low(header.key[1]);
    group.set_memory_descriptor(descriptor_.get());
    return absl::OkStatus();
  }

  absl::Status Map(const v1::HostGroup& group) {
    const std::string path = absl::StrCat("/proc/", group.ranks(0).pid(),
                                          "/fd/", group.memory_descriptor());
    const fs::UniqueFd opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!opened.valid()) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
    }
    ASSIGN_OR_RETURN(SharedMemory memory,
                     SharedMemory::Map(opened, Region::Bytes(layout_)));
    memory_ = std::make_shared<HostMemory>(std::move(memory));
    const RegionHeader& header = region().header();
    if (header.key[0] != group.key_high() || header.key[1] != group.key_low()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is not the memory of this group"));
    }
    return absl::OkStatus();
  }

  absl::Status Watch(const v1::HostGroup& group) {
    for (const v1::HostRank& rank : group.ranks()) {
      auto& process = memory_->processes.emplace_back();
      if (rank.pid() == getpid()) continue;
      ASSIGN_OR_RETURN(process,
                       PeerProcess::Open(rank.pid(), rank.start_time()));
    }
    return absl::OkStatus();
  }

  absl::Status MeetMapped(const absl::Status& status) {
    v1::HostMapped mapped;
    if (!status.ok()) {
      mapped.set_error(
          absl::StrCat(NameOf(rank_), ": ", std::string(status.message())));
    }
    ASSIGN_OR_RETURN(
        const std::string result,
        Pass(mapped_, mapped.SerializeAsString(),
             [](const std::vector<std::string>& payloads)
                 -> absl::StatusOr<std::string> {
               v1::HostMapped any;
               for (const std::string& payload : payloads) {
                 v1::HostMapped each;
                 if (each.ParseFromString(payload) && !each.error().empty()) {
                   any = each;
                 }
               }
               return any.SerializeAsString();
             }));
    if (mapped.ParseFromString(result) && mapped.error().empty()) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(mapped.error());
  }

  const int rank_;
  const int size_;
  const HostOptions options_;
  const Region::Layout layout_;
  const async::MonotonicTime deadline_;
  store::Barrier ranks_;
  store::Barrier mapped_;
  std::vector<store::Barrier::Participant> participants_;
  std::shared_ptr<HostMemory> memory_;
  // Of rank 0, from which the others open the memory.
  fs::UniqueFd descriptor_;
};

}  // namespace

std::string NameOfHost() {
  struct stat pid_namespace {};
  (void)stat("/proc/self/ns/pid", &pid_namespace);
  return absl::StrCat(ipc::BootId(), " ", pid_namespace.st_ino, " ", geteuid());
}

absl::StatusOr<std::unique_ptr<Backend>> MakeHostBackend(
    store::Store& store, int rank, int size, absl::Duration timeout,
    const HostOptions& options) {
  return Meeting(store, rank, size, timeout, options).Run();
}

}  // namespace hawser::collectives
