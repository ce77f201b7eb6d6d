#include "dist_optim/distributed_optimizer.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_optim/optimizer_codec.h"
#include "dist_optim/service_methods.h"
#include "optim/rule_codec.h"
#include "rpc/agent/service_host.h"
#include "rpc/errors/status_prefix.h"
#include "rpc/identity/worker_run.h"
#include "rref/protocol.h"
#include "rref/wire_ids.h"

namespace hawser::dist_optim {
namespace {

// Combines several errors: code and details of the first one, all messages.
absl::Status Combine(const std::vector<absl::Status>& statuses) {
  absl::Status first;
  std::string others;
  for (const absl::Status& status : statuses) {
    if (status.ok()) continue;
    if (first.ok()) {
      first = status;
    } else {
      absl::StrAppend(&others, "; ", status.message());
    }
  }
  if (others.empty()) return first;
  absl::Status combined(first.code(), absl::StrCat(first.message(), others));
  first.ForEachPayload([&](auto url, const absl::Cord& payload) {
    combined.SetPayload(url, payload);
  });
  return combined;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DistributedOptimizer>>
DistributedOptimizer::Create(rpc::Agent& agent, const optim::RuleSpec& rule,
                             std::vector<rref::RRef<Tensor>> parameters) {
  std::vector<ParameterGroup> groups;
  groups.push_back({rule, std::move(parameters)});
  return Create(agent, std::move(groups));
}

async::Future<std::unique_ptr<DistributedOptimizer>>
DistributedOptimizer::CreateAsync(rpc::Agent& agent,
                                  std::vector<ParameterGroup> groups) {
  using Optimizer = std::unique_ptr<DistributedOptimizer>;
  size_t count = 0;
  for (const ParameterGroup& group : groups) {
    for (const rref::RRef<Tensor>& parameter : group.parameters) {
      if (!parameter.valid()) {
        return async::MakeReadyFuture<Optimizer>(absl::InvalidArgumentError(
            "a parameter of the optimizer is an empty reference"));
      }
      ++count;
    }
  }
  if (count == 0) {
    return async::MakeReadyFuture<Optimizer>(absl::InvalidArgumentError(
        "the optimizer needs at least one parameter"));
  }
  Optimizer optimizer(new DistributedOptimizer(agent, groups.size()));
  async::Future<void> created = optimizer->CreateParts(groups);
  return std::move(created).Then(
      [optimizer = std::move(optimizer)](
          const absl::Status& status) mutable -> absl::StatusOr<Optimizer> {
        if (!status.ok()) return status;
        return std::move(optimizer);
      });
}

async::Future<void> DistributedOptimizer::CreateParts(
    const std::vector<ParameterGroup>& groups) {
  const absl::StatusOr<std::shared_ptr<rref::Protocol>> references =
      rref::ProtocolOf(agent_);
  if (!references.ok()) {
    return async::MakeReadyFuture<void>(references.status());
  }
  // In the order of the owners' first parameters.
  std::map<rpc::WorkerRun, size_t> part_of;
  for (size_t g = 0; g < groups.size(); ++g) {
    group_sizes_.push_back(groups[g].parameters.size());
    for (size_t i = 0; i < groups[g].parameters.size(); ++i) {
      const rpc::WorkerInfo& owner = groups[g].parameters[i].owner();
      const auto [it, added] = part_of.try_emplace(RunOf(owner), parts_.size());
      if (added) {
        parts_.push_back(
            {owner, nullptr, std::vector<std::vector<size_t>>(groups.size())});
      }
      parts_[it->second].positions[g].push_back(i);
    }
  }
  return ForEachPart([&](Part& part) -> async::Future<void> {
    rref::Protocol::Creation creation =
        (*references)->BeginCreation(part.owner);
    part.optimizer = creation.reference;
    v1::CreateOptimizerRequest request;
    *request.mutable_rref() = rref::ToProto(part.optimizer->id());
    *request.mutable_fork() = rref::ToProto(part.optimizer->fork());
    for (size_t g = 0; g < groups.size(); ++g) {
      v1::OptimizerGroup& group = *request.add_groups();
      *group.mutable_rule() = optim::ToProto(groups[g].rule);
      for (const size_t i : part.positions[g]) {
        absl::StatusOr<v1::RRefReference> shared =
            (*references)
                ->Share(*groups[g].parameters[i].reference(), part.owner);
        if (!shared.ok()) {
          std::move(creation.finish)(shared.status());
          return async::MakeReadyFuture<void>(shared.status());
        }
        *group.add_parameters() = *std::move(shared);
      }
    }
    return agent_.host()
        .CallMethod(part.owner, kCreateOptimizerMethod, request)
        .Then([finish = std::move(creation.finish)](
                  absl::StatusOr<rpc::Message<v1::CreateOptimizerReply>>
                      reply) mutable {
          std::move(finish)(reply.status());
          return reply.status();
        });
  });
}

template <class Call>
async::Future<void> DistributedOptimizer::ForEachPart(Call call) {
  std::vector<async::Future<void>> done;
  std::vector<std::string> names;
  for (Part& part : parts_) {
    done.push_back(call(part));
    names.push_back(
        absl::StrCat("optimizer on worker '", part.owner.name, "'"));
  }
  return async::JoinAllSettled(std::move(done))
      .Then([names = std::move(names)](
                absl::StatusOr<std::vector<absl::Status>> results) {
        if (!results.ok()) return results.status();
        for (size_t i = 0; i < results->size(); ++i) {
          (*results)[i] = rpc::WithPrefix(names[i], (*results)[i]);
        }
        return Combine(*results);
      });
}

async::Future<void> DistributedOptimizer::StepAsync(
    dist_autograd::ContextId context) {
  absl::StatusOr<std::shared_ptr<dist_autograd::Engine>> engine =
      dist_autograd::EngineOf(agent_);
  if (!engine.ok()) return async::MakeReadyFuture<void>(engine.status());
  if (absl::Status status = (*engine)->FindContext(context).status();
      !status.ok()) {
    return async::MakeReadyFuture<void>(std::move(status));
  }
  const uint64_t step = next_step_.fetch_add(1, std::memory_order_relaxed);
  return ForEachPart([&](Part& part) {
    v1::OptimizerStepRequest request;
    *request.mutable_optimizer() = rref::ToProto(part.optimizer->id());
    request.set_context(dist_autograd::ToNumber(context));
    request.set_step(step);
    return agent_.host()
        .CallMethod(part.owner, kOptimizerStepMethod, request)
        .Then([kept = part.optimizer](
                  absl::StatusOr<rpc::Message<v1::OptimizerStepReply>> reply) {
          return reply.status();
        });
  });
}

absl::Status DistributedOptimizer::SetOption(size_t group,
                                             std::string_view option,
                                             double value) {
  if (group >= num_groups_) {
    return absl::OutOfRangeError(
        absl::StrCat("group ", group, " does not exist: the optimizer has ",
                     num_groups_, " groups"));
  }
  return ForEachPart([&](Part& part) {
           v1::SetOptimizerOptionRequest request;
           *request.mutable_optimizer() = rref::ToProto(part.optimizer->id());
           request.set_group(static_cast<uint32_t>(group));
           request.set_option(std::string(option));
           request.set_value(value);
           return agent_.host()
               .CallMethod(part.owner, kSetOptimizerOptionMethod, request)
               .Then(
                   [](absl::StatusOr<rpc::Message<v1::SetOptimizerOptionReply>>
                          reply) { return reply.status(); });
         })
      .Wait();
}

absl::Status DistributedOptimizer::SetLearningRate(double learning_rate) {
  for (size_t group = 0; group < num_groups_; ++group) {
    RETURN_IF_ERROR(SetOption(group, "lr", learning_rate));
  }
  return absl::OkStatus();
}

absl::StatusOr<DistributedOptimizer::State> DistributedOptimizer::GetState() {
  State state(num_groups_);
  for (size_t g = 0; g < num_groups_; ++g) {
    state[g].parameters.resize(group_sizes_[g]);
  }
  for (const Part& part : parts_) {
    v1::GetOptimizerStateRequest request;
    *request.mutable_optimizer() = rref::ToProto(part.optimizer->id());
    ASSIGN_OR_RETURN(
        rpc::Message<v1::GetOptimizerStateReply> reply,
        agent_.host()
            .CallMethod(part.owner, kGetOptimizerStateMethod, request)
            .Wait());
    std::vector<size_t> sizes;
    for (const auto& positions : part.positions) {
      sizes.push_back(positions.size());
    }
    ASSIGN_OR_RETURN(std::vector<GroupState> groups,
                     ReadState(reply.body.rules(), reply.body.parameters(),
                               std::move(reply.tensors), sizes));
    for (size_t g = 0; g < num_groups_; ++g) {
      state[g].rule = std::move(groups[g].rule);
      for (size_t i = 0; i < sizes[g]; ++i) {
        state[g].parameters[part.positions[g][i]] =
            std::move(groups[g].parameters[i]);
      }
    }
  }
  return state;
}

absl::Status DistributedOptimizer::SetState(const State& state) {
  bool fits = state.size() == num_groups_;
  for (size_t g = 0; fits && g < num_groups_; ++g) {
    fits = state[g].parameters.size() == group_sizes_[g];
  }
  if (!fits) {
    return absl::InvalidArgumentError(
        "the state is from an optimizer with different groups or parameters");
  }
  return ForEachPart([&](Part& part) {
           std::vector<GroupState> groups(num_groups_);
           for (size_t g = 0; g < num_groups_; ++g) {
             groups[g].rule = state[g].rule;
             for (const size_t i : part.positions[g]) {
               groups[g].parameters.push_back(state[g].parameters[i]);
             }
           }
           v1::SetOptimizerStateRequest request;
           *request.mutable_optimizer() = rref::ToProto(part.optimizer->id());
           std::vector<Tensor> tensors;
           WriteState(groups, *request.mutable_rules(),
                      *request.mutable_parameters(), tensors);
           return agent_.host()
               .CallMethod(part.owner, kSetOptimizerStateMethod, request,
                           std::move(tensors))
               .Then([](absl::StatusOr<rpc::Message<v1::SetOptimizerStateReply>>
                            reply) { return reply.status(); });
         })
      .Wait();
}

}  // namespace hawser::dist_optim
