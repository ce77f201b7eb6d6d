// Jobs in one process, with references, distributed autograd and distributed
// optimizers.

#ifndef HAWSER_TESTS_DISTRIBUTED_JOB_H_
#define HAWSER_TESTS_DISTRIBUTED_JOB_H_

#include <cstddef>
#include <memory>

#include "dist_autograd/dist_autograd_service.h"
#include "dist_optim/dist_optim_service.h"
#include "gtest/gtest.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rref/rref_service.h"

namespace hawser::tests {

struct DistributedJobOptions {
  rref::RRefOptions references = {};
  dist_autograd::DistAutogradOptions autograd = {};
};

inline void AddServices(rpc::AgentOptions& agent,
                        const DistributedJobOptions& options = {}) {
  agent.services.push_back(
      std::make_unique<rref::RRefService>(options.references));
  agent.services.push_back(
      std::make_unique<dist_autograd::DistAutogradService>(options.autograd));
  agent.services.push_back(std::make_unique<dist_optim::DistOptimService>());
}

// Starts workers "w0", "w1", ... with all services.
inline void StartDistributed(rpc::TestJob& job, int world_size,
                             const DistributedJobOptions& options = {}) {
  job.StartAll(world_size, [&](int, rpc::AgentOptions& agent) {
    AddServices(agent, options);
  });
}

// Adds worker "w<rank>" to a dynamic job.
inline void JoinDistributed(rpc::TestJob& job, int rank) {
  job.StartOne(rank, [](int, rpc::AgentOptions& agent) { AddServices(agent); });
}

inline size_t NumContexts(rpc::Agent& agent) {
  return agent.service<dist_autograd::DistAutogradService>()
      ->engine()
      ->num_contexts();
}

// Expects that `agent` holds no references or contexts, as must be the case
// after all handles and contexts were destroyed.
inline void ExpectNothingLeft(rpc::Agent& agent) {
  EXPECT_EQ(NumContexts(agent), 0u) << agent.info().name;
  const rref::Protocol::Counts references =
      agent.service<rref::RRefService>()->protocol()->counts();
  EXPECT_EQ(references.owner.owners, 0u) << agent.info().name;
  EXPECT_EQ(references.owner.forks, 0u) << agent.info().name;
  EXPECT_EQ(references.user.users, 0u) << agent.info().name;
  EXPECT_EQ(references.user.pending_children, 0u) << agent.info().name;
}

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_DISTRIBUTED_JOB_H_
