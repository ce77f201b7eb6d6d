// Random use of references in a simulated job, checked against the guarantees
// of docs/rref.md.

#ifndef HAWSER_RREF_TESTING_REFERENCE_WORKLOAD_H_
#define HAWSER_RREF_TESTING_REFERENCE_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "async/future.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/cluster_simulation.h"
#include "rref/rref.h"

namespace hawser::rref {

// The existing resources, by number.
class Resources {
 public:
  virtual ~Resources() = default;
  virtual void OnEnd(int64_t number) = 0;
};

// Cannot be encoded. Reports its destruction.
class Resource {
 public:
  static constexpr std::string_view kTypeName = "test.Resource";

  Resource(Resources* all, int64_t number) : all_(all), number_(number) {}
  Resource(Resource&& other) noexcept
      : all_(std::exchange(other.all_, nullptr)), number_(other.number_) {}
  ~Resource() {
    if (all_ != nullptr) all_->OnEnd(number_);
  }

  int64_t number() const { return number_; }

 private:
  Resources* all_;
  const int64_t number_;
};

// Workers that create, share, read and drop references. Violations are failures
// of the job, which must be destroyed first. Not thread-safe.
class ReferenceWorkload final : private Resources {
 public:
  // After this time without faults, the forks of lost calls are withdrawn.
  static constexpr absl::Duration kSettling = absl::Seconds(10);

  // Adds an RRefService to a starting worker.
  static void AddService(rpc::AgentOptions& options);
  // Registers the functions. Call before workers start.
  void Attach(rpc::ClusterSimulation* job);
  // For ClusterSimulation::Options::on_end.
  void OnWorkerEnd(const rpc::WorkerInfo& worker) {
    ended_.insert(worker.incarnation);
  }

  void RandomAction();
  // Drops the handles of ended workers. Call between steps.
  void ForgetTheEnded();

  // Fails unless each handle is confirmed or refused, and each confirmed one
  // can be read. Call after kSettling without faults.
  void CheckThatTheHeldLive();
  void DropAll();
  // G5. Call after kSettling without handles.
  void CheckThatNothingIsLeft();

 private:
  // A handle that a worker keeps.
  struct Held {
    int worker;
    rpc::Incarnation holder;
    RRef<Resource> rref;
  };

  Resource Make(int64_t number);
  void OnEnd(int64_t number) override;
  int64_t NumberOf(const RRef<Resource>& rref) { return numbers_[rref.id()]; }
  // Whether the holder runs and keeps its references.
  bool LivesOn(const Held& held);
  // Returns null unless it runs and was not told to leave.
  rpc::Agent* OwnerOf(const RRef<Resource>& rref);
  void Keep(rpc::Agent& agent, RRef<Resource> rref);
  std::vector<RRef<Resource>> Give();
  void UseRandomly(const rpc::CallOptions& options);
  async::Future<int64_t> Read(rpc::Agent& agent, const RRef<Resource>& rref,
                              const rpc::CallOptions& options);

  rpc::ClusterSimulation* job_ = nullptr;
  int64_t last_number_ = 0;
  std::set<int64_t> live_;
  std::map<RRefId, int64_t> numbers_;
  std::set<rpc::Incarnation> ended_;
  // Handles may outlive agents.
  std::vector<Held> held_;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_TESTING_REFERENCE_WORKLOAD_H_
