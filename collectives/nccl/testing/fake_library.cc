#include "collectives/nccl/testing/fake_library.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "collectives/reduce_elements.h"
#include "tensor/dtype.h"

namespace hawser::collectives {
namespace {

size_t BytesOf(size_t count, const Reduction& reduction) {
  return count * static_cast<size_t>(tensor::ItemBytes(reduction.dtype));
}

class FakeMark final : public Backend::Mark {};

}  // namespace

struct FakeNcclMachine::Rank {
  std::vector<std::string> calls = {};
  std::map<std::string, absl::Status> failures = {};
  absl::Status async_error = {};
  // By the function after which they become async_error.
  std::map<std::string, absl::Status> coming_errors = {};
  bool stopped = false;
  std::set<std::thread::id> threads = {};
  std::vector<NcclConfig> configs = {};
};

struct FakeNcclMachine::Operation {
  enum class Kind { kCollective, kSend, kReceive, kCopy };
  Kind kind = Kind::kCollective;
  std::string name;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  size_t bytes = 0;
  Reduction reduction = {};
  // The root, or the other rank of a message.
  int peer = 0;
  bool done = false;
};

// Groups of operations; those of the first one run.
struct FakeNcclMachine::Stream {
  std::deque<std::vector<Operation>> groups;
  bool joined = false;
  bool stopped = false;
};

// The communicators with one id.
struct FakeNcclMachine::Clique {
  std::vector<Stream> streams;
  bool complete() const {
    return std::all_of(streams.begin(), streams.end(),
                       [](const Stream& each) { return each.joined; });
  }
};

class FakeNcclCommunicator final : public NcclCommunicator {
 public:
  using Operation = FakeNcclMachine::Operation;

  FakeNcclCommunicator(std::shared_ptr<FakeNcclMachine> machine,
                       std::shared_ptr<FakeNcclMachine::Clique> clique,
                       int process, int rank)
      : machine_(std::move(machine)),
        clique_(std::move(clique)),
        process_(process),
        rank_(rank) {}
  ~FakeNcclCommunicator() override { HAWSER_CHECK(released_); }

  absl::Status AllReduce(const std::byte* input, std::byte* output,
                         size_t count, const Reduction& reduction) override {
    return Add({.name = "ncclAllReduce",
                .input = input,
                .output = output,
                .bytes = BytesOf(count, reduction),
                .reduction = reduction});
  }
  absl::Status Reduce(const std::byte* input, std::byte* output, size_t count,
                      const Reduction& reduction, int root) override {
    return Add({.name = "ncclReduce",
                .input = input,
                .output = output,
                .bytes = BytesOf(count, reduction),
                .reduction = reduction,
                .peer = root});
  }
  absl::Status ReduceScatter(const std::byte* input, std::byte* output,
                             size_t count,
                             const Reduction& reduction) override {
    return Add({.name = "ncclReduceScatter",
                .input = input,
                .output = output,
                .bytes = BytesOf(count, reduction),
                .reduction = reduction});
  }
  absl::Status Broadcast(const std::byte* input, std::byte* output,
                         size_t bytes, int root) override {
    return Add({.name = "ncclBroadcast",
                .input = input,
                .output = output,
                .bytes = bytes,
                .peer = root});
  }
  absl::Status AllGather(const std::byte* input, std::byte* output,
                         size_t bytes) override {
    return Add({.name = "ncclAllGather",
                .input = input,
                .output = output,
                .bytes = bytes});
  }
  absl::Status Send(const std::byte* data, size_t bytes, int peer) override {
    return Add({.kind = Operation::Kind::kSend,
                .name = "ncclSend",
                .input = data,
                .bytes = bytes,
                .peer = peer});
  }
  absl::Status Recv(std::byte* data, size_t bytes, int peer) override {
    return Add({.kind = Operation::Kind::kReceive,
                .name = "ncclRecv",
                .output = data,
                .bytes = bytes,
                .peer = peer});
  }
  absl::Status Copy(const std::byte* from, std::byte* to,
                    size_t bytes) override {
    return Add({.kind = Operation::Kind::kCopy,
                .name = "cudaMemcpyAsync",
                .input = from,
                .output = to,
                .bytes = bytes});
  }

  absl::Status GroupStart() override {
    HAWSER_CHECK(!in_group_);
    in_group_ = true;
    return Call("ncclGroupStart");
  }
  absl::Status GroupEnd() override {
    HAWSER_CHECK(in_group_);
    in_group_ = false;
    absl::Status status = Call("ncclGroupEnd");
    std::vector<Operation> group;
    group.swap(group_);
    if (status.ok()) Enqueue(std::move(group));
    return status;
  }

  absl::Status WaitFor(const Backend::Mark& /*mark*/) override {
    return Call("cudaStreamWaitEvent");
  }
  absl::Status RecordEnd() override { return Call("cudaEventRecord"); }
  absl::StatusOr<bool> HasEnded() override {
    const async::MutexLock lock(&machine_->mutex_);
    return stream().groups.empty();
  }
  absl::StatusOr<bool> GetAsyncError() override {
    const async::MutexLock lock(&machine_->mutex_);
    RETURN_IF_ERROR(machine_->RankOf(process_).async_error);
    return clique_->complete();
  }

  absl::Status Finalize() override { return Call("ncclCommFinalize"); }
  void Destroy() override {
    (void)Call("ncclCommDestroy");
    Release();
  }
  void Abort() override {
    (void)Call("ncclCommAbort");
    Release();
  }

 private:
  absl::Status Call(const std::string& function) {
    HAWSER_CHECK(!released_);
    {
      const async::MutexLock lock(&machine_->mutex_);
      machine_->RankOf(process_).threads.insert(std::this_thread::get_id());
    }
    return machine_->Call(process_, function);
  }
  absl::Status Add(Operation operation) {
    RETURN_IF_ERROR(Call(operation.name));
    if (in_group_) {
      group_.push_back(std::move(operation));
    } else {
      Enqueue({std::move(operation)});
    }
    return absl::OkStatus();
  }
  void Enqueue(std::vector<Operation> group) {
    const async::MutexLock lock(&machine_->mutex_);
    stream().stopped = machine_->RankOf(process_).stopped;
    stream().groups.push_back(std::move(group));
    machine_->RunReady(*clique_);
  }
  void Release() {
    const async::MutexLock lock(&machine_->mutex_);
    released_ = true;
    // The device does not use the memory any more.
    stream().groups.clear();
    stream().stopped = true;
    --machine_->num_communicators_;
  }
  FakeNcclMachine::Stream& stream() {
    return clique_->streams[static_cast<size_t>(rank_)];
  }

  const std::shared_ptr<FakeNcclMachine> machine_;
  const std::shared_ptr<FakeNcclMachine::Clique> clique_;
  const int process_;
  const int rank_;
  bool in_group_ = false;
  bool released_ = false;
  std::vector<Operation> group_;
};

class FakeNcclLibrary final : public NcclLibrary {
 public:
  FakeNcclLibrary(std::shared_ptr<FakeNcclMachine> machine, int rank,
                  tensor::Device device)
      : machine_(std::move(machine)), process_(rank), device_(device) {}

  tensor::Device device() const override { return device_; }
  absl::StatusOr<NcclId> GetUniqueId() override {
    RETURN_IF_ERROR(machine_->Call(process_, "ncclGetUniqueId"));
    const async::MutexLock lock(&machine_->mutex_);
    NcclId id = {};
    const int number = ++machine_->next_id_;
    std::memcpy(id.data(), &number, sizeof(number));
    return id;
  }
  absl::StatusOr<std::unique_ptr<NcclCommunicator>> CommInitRank(
      const NcclId& id, int rank, int size, const NcclConfig& config) override {
    RETURN_IF_ERROR(machine_->Call(process_, "ncclCommInitRankConfig"));
    const async::MutexLock lock(&machine_->mutex_);
    machine_->RankOf(process_).configs.push_back(config);
    std::shared_ptr<FakeNcclMachine::Clique>& clique = machine_->cliques_[id];
    if (clique == nullptr) {
      clique = std::make_shared<FakeNcclMachine::Clique>();
      clique->streams.resize(static_cast<size_t>(size));
    }
    HAWSER_CHECK(clique->streams.size() == static_cast<size_t>(size));
    FakeNcclMachine::Stream& stream =
        clique->streams[static_cast<size_t>(rank)];
    HAWSER_CHECK(!stream.joined);
    stream.joined = true;
    ++machine_->num_communicators_;
    return std::make_unique<FakeNcclCommunicator>(machine_, clique, process_,
                                                  rank);
  }
  absl::StatusOr<std::shared_ptr<const Backend::Mark>> Mark() override {
    RETURN_IF_ERROR(machine_->Call(process_, "cudaEventRecord of the device"));
    return std::make_shared<const FakeMark>();
  }

 private:
  const std::shared_ptr<FakeNcclMachine> machine_;
  const int process_;
  const tensor::Device device_;
};

FakeNcclMachine::FakeNcclMachine() = default;
FakeNcclMachine::~FakeNcclMachine() { HAWSER_CHECK(NumCommunicators() == 0); }

std::unique_ptr<NcclLibrary> FakeNcclMachine::MakeLibrary(
    int rank, tensor::Device device) {
  return std::make_unique<FakeNcclLibrary>(shared_from_this(), rank, device);
}

void FakeNcclMachine::FailNext(int rank, const std::string& function,
                               const absl::Status& status) {
  const async::MutexLock lock(&mutex_);
  ranks_[rank].failures[function] = status;
}
void FakeNcclMachine::SetAsyncErrorAfter(int rank, const std::string& function,
                                         const absl::Status& status) {
  const async::MutexLock lock(&mutex_);
  ranks_[rank].coming_errors[function] = status;
}
void FakeNcclMachine::StopDevice(int rank) {
  const async::MutexLock lock(&mutex_);
  ranks_[rank].stopped = true;
}

std::vector<std::string> FakeNcclMachine::Calls(int rank) const {
  const async::MutexLock lock(&mutex_);
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? std::vector<std::string>()
                               : found->second.calls;
}
int FakeNcclMachine::NumThreads(int rank) const {
  const async::MutexLock lock(&mutex_);
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? 0
                               : static_cast<int>(found->second.threads.size());
}
int FakeNcclMachine::NumCommunicators() const {
  const async::MutexLock lock(&mutex_);
  return num_communicators_;
}
std::vector<NcclConfig> FakeNcclMachine::Configs(int rank) const {
  const async::MutexLock lock(&mutex_);
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? std::vector<NcclConfig>()
                               : found->second.configs;
}

absl::Status FakeNcclMachine::Call(int rank, const std::string& function) {
  const async::MutexLock lock(&mutex_);
  Rank& self = RankOf(rank);
  self.calls.push_back(function);
  const auto coming = self.coming_errors.find(function);
  if (coming != self.coming_errors.end()) self.async_error = coming->second;
  const auto failure = self.failures.find(function);
  if (failure == self.failures.end()) return absl::OkStatus();
  absl::Status status = failure->second;
  self.failures.erase(failure);
  return status;
}

FakeNcclMachine::Rank& FakeNcclMachine::RankOf(int rank) {
  return ranks_[rank];
}

void FakeNcclMachine::RunReady(Clique& clique) {
  bool any = true;
  while (any) {
    any = false;
    for (Stream& stream : clique.streams) {
      if (stream.groups.empty() || stream.stopped) continue;
      for (Operation& each : stream.groups.front()) {
        if (each.kind != Operation::Kind::kCopy || each.done) continue;
        std::memmove(each.output, each.input, each.bytes);
        each.done = true;
      }
      any = PopDone(stream) || any;
    }
    while (RunMessage(clique) || RunCollective(clique)) any = true;
  }
}

bool FakeNcclMachine::PopDone(Stream& stream) {
  bool any = false;
  while (!stream.groups.empty() &&
         std::all_of(stream.groups.front().begin(), stream.groups.front().end(),
                     [](const Operation& each) { return each.done; })) {
    stream.groups.pop_front();
    any = true;
  }
  return any;
}

// Of the first groups of two ranks, a send and a receive that fit.
bool FakeNcclMachine::RunMessage(Clique& clique) {
  for (size_t from = 0; from < clique.streams.size(); ++from) {
    Stream& sender = clique.streams[from];
    if (sender.groups.empty() || sender.stopped) continue;
    for (Operation& send : sender.groups.front()) {
      if (send.kind != Operation::Kind::kSend || send.done) continue;
      const auto to = static_cast<size_t>(send.peer);
      Stream& receiver = clique.streams[to];
      if (receiver.groups.empty() || receiver.stopped) continue;
      for (Operation& receive : receiver.groups.front()) {
        if (receive.kind != Operation::Kind::kReceive || receive.done ||
            receive.peer != static_cast<int>(from)) {
          continue;
        }
        HAWSER_CHECK(send.bytes == receive.bytes);
        std::memcpy(receive.output, send.input, send.bytes);
        send.done = true;
        receive.done = true;
        PopDone(sender);
        PopDone(receiver);
        return true;
      }
    }
  }
  return false;
}

// The next collective, if all ranks have come to it.
bool FakeNcclMachine::RunCollective(Clique& clique) {
  std::vector<Operation*> calls;
  for (Stream& stream : clique.streams) {
    if (stream.groups.empty() || stream.stopped) return false;
    auto& group = stream.groups.front();
    const auto next =
        std::find_if(group.begin(), group.end(), [](const Operation& each) {
          return each.kind == Operation::Kind::kCollective && !each.done;
        });
    if (next == group.end()) return false;
    calls.push_back(&*next);
  }
  const Operation& first = *calls[0];
  std::vector<const std::byte*> inputs;
  for (const Operation* call : calls) {
    HAWSER_CHECK(call->name == first.name && call->bytes == first.bytes &&
                 call->peer == first.peer);
    inputs.push_back(call->input);
  }
  // The result, before an output overwrites an input.
  const size_t ranks = calls.size();
  const size_t bytes = first.bytes;
  const size_t total =
      first.name == "ncclReduceScatter" || first.name == "ncclAllGather"
          ? bytes * ranks
          : bytes;
  std::vector<std::byte> result(total);
  if (first.name == "ncclBroadcast") {
    std::memcpy(result.data(), inputs[static_cast<size_t>(first.peer)], bytes);
  } else if (first.name == "ncclAllGather") {
    for (size_t i = 0; i < ranks; ++i) {
      std::memcpy(result.data() + i * bytes, inputs[i], bytes);
    }
  } else {
    ReduceElements(first.reduction, inputs, result.data(), total);
  }
  for (size_t i = 0; i < ranks; ++i) {
    if (first.name == "ncclReduceScatter") {
      std::memcpy(calls[i]->output, result.data() + i * bytes, bytes);
    } else if (first.name != "ncclReduce" ||
               static_cast<int>(i) == first.peer) {
      std::memcpy(calls[i]->output, result.data(), total);
    }
    calls[i]->done = true;
  }
  for (Stream& stream : clique.streams) PopDone(stream);
  return true;
}

}  // namespace hawser::collectives
