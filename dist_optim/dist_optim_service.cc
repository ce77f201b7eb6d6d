#include "dist_optim/dist_optim_service.h"

#include <string>
#include <utility>
#include <vector>

#include "async/join.h"
#include "async/status_macros.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_optim/optimizer_codec.h"
#include "dist_optim/owner_optimizer.h"
#include "dist_optim/service_methods.h"
#include "optim/rule_codec.h"
#include "proto/dist_optim.pb.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rref/protocol.h"
#include "rref/rref_service.h"

namespace hawser::dist_optim {
namespace {

using OptimizerFuture = async::Future<std::shared_ptr<OwnerOptimizer>>;

template <class M>
async::Future<rpc::Message<M>> Failed(absl::Status status) {
  return async::MakeReadyFuture<rpc::Message<M>>(std::move(status));
}

template <class M>
absl::StatusOr<rpc::Message<M>> Reply(const absl::Status& status) {
  if (!status.ok()) return status;
  return rpc::Message<M>();
}

// The tensor in a value.
absl::StatusOr<Tensor> TensorOf(const rpc::ErasedValue& value) {
  if (value.type->name != rpc::TypeName<Tensor>()) {
    return absl::InvalidArgumentError(
        "a parameter has type " + value.type->name + "; it must be a tensor");
  }
  return *std::static_pointer_cast<Tensor>(value.value);
}

}  // namespace

// Handlers of the methods, kept alive by the calls that they have started.
class DistOptimService::Methods
    : public std::enable_shared_from_this<DistOptimService::Methods> {
 public:
  Methods(rpc::ServiceHost& host, std::shared_ptr<rref::Protocol> references,
          std::shared_ptr<dist_autograd::Engine> autograd)
      : host_(host),
        references_(std::move(references)),
        autograd_(std::move(autograd)) {}

  absl::Status Register(rpc::ServiceHost& host) {
    RETURN_IF_ERROR(
        (host.RegisterMethod(kCreateOptimizerMethod,
                             [this](const rpc::MethodCall& call, auto request) {
                               return Create(call, request.body);
                             })));
    RETURN_IF_ERROR(
        (host.RegisterMethod(kOptimizerStepMethod,
                             [this](const rpc::MethodCall& call, auto request) {
                               return Step(call, request.body);
                             })));
    RETURN_IF_ERROR(
        (host.RegisterMethod(kSetOptimizerOptionMethod,
                             [this](const rpc::MethodCall& call, auto request) {
                               return SetOption(call, request.body);
                             })));
    RETURN_IF_ERROR(
        (host.RegisterMethod(kGetOptimizerStateMethod,
                             [this](const rpc::MethodCall& call, auto request) {
                               return GetState(call, request.body);
                             })));
    return host.RegisterMethod(
        kSetOptimizerStateMethod,
        [this](const rpc::MethodCall& call, auto request) {
          return SetState(call, std::move(request));
        });
  }

  void Stop() { host_.Revoke(); }

 private:
  async::Future<rpc::Message<v1::CreateOptimizerReply>> Create(
      const rpc::MethodCall& call, const v1::CreateOptimizerRequest& request) {
    using M = v1::CreateOptimizerReply;
    absl::StatusOr<std::shared_ptr<rref::OwnerValue>> optimizer =
        references_->ReceiveCreation(request.rref(), request.fork(), call.peer);
    if (!optimizer.ok()) return Failed<M>(optimizer.status());
    const auto fail = [&](const absl::Status& status) {
      (*optimizer)->Set(status);
      return Failed<M>(status);
    };
    std::vector<OwnerOptimizer::Group> groups;
    // Values of the parameters, in the order of the groups. They may not have
    // been created yet. A peer may name the optimizer itself, so what waits for
    // the values must not keep them.
    std::vector<async::Future<rpc::ErasedValue>> values;
    std::vector<std::weak_ptr<rref::OwnerValue>> owners;
    for (const v1::OptimizerGroup& group : request.groups()) {
      OwnerOptimizer::Group& entry = groups.emplace_back();
      entry.rule = optim::FromProto(group.rule());
      for (const v1::RRefReference& proto : group.parameters()) {
        absl::StatusOr<rref::Protocol::ReceivedReference> received =
            references_->Receive(proto, call.peer);
        if (!received.ok()) return fail(received.status());
        if (absl::Status status = received->reference->CheckIsOwner();
            !status.ok()) {
          return fail(status);
        }
        entry.parameters.emplace_back();
        owners.push_back(received->reference->value());
        values.push_back(received->reference->value()->future());
      }
    }
    return async::JoinAll(std::move(values))
        .Then([groups = std::move(groups), owners = std::move(owners),
               weak = std::weak_ptr<rref::OwnerValue>(*optimizer)](
                  absl::StatusOr<std::vector<rpc::ErasedValue>> objects) mutable
              -> absl::StatusOr<rpc::Message<M>> {
          const std::shared_ptr<rref::OwnerValue> made = weak.lock();
          if (made == nullptr) {
            return absl::AbortedError(
                "the references to the optimizer ended before it was made");
          }
          return Reply<M>(
              Finish(std::move(groups), owners, std::move(objects), *made));
        });
  }

  // Creates the optimizer of `objects`, the parameters in the order of
  // `groups`, with their owners.
  static absl::Status Finish(
      std::vector<OwnerOptimizer::Group> groups,
      const std::vector<std::weak_ptr<rref::OwnerValue>>& owners,
      absl::StatusOr<std::vector<rpc::ErasedValue>> objects,
      rref::OwnerValue& optimizer) {
    auto make = [&]() -> absl::StatusOr<std::shared_ptr<OwnerOptimizer>> {
      RETURN_IF_ERROR(objects);
      size_t next = 0;
      for (OwnerOptimizer::Group& group : groups) {
        for (OwnedParameter& parameter : group.parameters) {
          parameter.value = owners[next].lock();
          if (parameter.value == nullptr) {
            return absl::AbortedError(
                "the references to a parameter ended before it was made");
          }
          ASSIGN_OR_RETURN(parameter.tensor, TensorOf((*objects)[next++]));
        }
      }
      return OwnerOptimizer::Create(std::move(groups));
    };
    absl::StatusOr<std::shared_ptr<OwnerOptimizer>> made = make();
    if (!made.ok()) {
      optimizer.Set(made.status());
      return made.status();
    }
    optimizer.Set(
        rpc::ErasedValue{*std::move(made), rpc::ValueTypeOf<OwnerOptimizer>()});
    return absl::OkStatus();
  }

  OptimizerFuture Find(const v1::GlobalId& id, const rpc::WorkerInfo& from) {
    absl::StatusOr<std::shared_ptr<rref::OwnerValue>> value =
        references_->FindValue(id, from);
    if (!value.ok()) {
      return async::MakeReadyFuture<std::shared_ptr<OwnerOptimizer>>(
          value.status());
    }
    return (*value)->future().Then(
        [](absl::StatusOr<rpc::ErasedValue> object)
            -> absl::StatusOr<std::shared_ptr<OwnerOptimizer>> {
          RETURN_IF_ERROR(object);
          if (object->type->name != OwnerOptimizer::kTypeName) {
            return absl::InvalidArgumentError(
                "the reference does not refer to an optimizer");
          }
          return std::static_pointer_cast<OwnerOptimizer>(object->value);
        });
  }

  async::Future<rpc::Message<v1::OptimizerStepReply>> Step(
      const rpc::MethodCall& call, const v1::OptimizerStepRequest& request) {
    return Find(request.optimizer(), call.peer)
        .Then([self = shared_from_this(), step = request.step(),
               id = dist_autograd::ContextId{request.context()}](
                  absl::StatusOr<std::shared_ptr<OwnerOptimizer>> optimizer) {
          return self->StepOf(std::move(optimizer), id, step);
        })
        .Then([](absl::StatusOr<uint64_t> updated)
                  -> absl::StatusOr<rpc::Message<v1::OptimizerStepReply>> {
          RETURN_IF_ERROR(updated);
          rpc::Message<v1::OptimizerStepReply> reply;
          reply.body.set_parameters_updated(*updated);
          return reply;
        });
  }

  async::Future<uint64_t> StepOf(
      absl::StatusOr<std::shared_ptr<OwnerOptimizer>> optimizer,
      dist_autograd::ContextId context_id, uint64_t step) {
    if (!optimizer.ok()) {
      return async::MakeReadyFuture<uint64_t>(optimizer.status());
    }
    const rpc::HostHandle::Use host = host_.Acquire();
    if (!host) {
      return async::MakeReadyFuture<uint64_t>(
          absl::UnavailableError("the worker is shutting down"));
    }
    absl::StatusOr<std::shared_ptr<dist_autograd::Context>> context =
        autograd_->FindContext(context_id);
    // If the context never reached this worker, its parameters do not have
    // gradients.
    if (!context.ok()) return async::MakeReadyFuture<uint64_t>(uint64_t{0});
    return (*optimizer)
        ->Step(
            step,
            [context = *std::move(context)](const Tensor& parameter) {
              return context->gradient(parameter);
            },
            host->executor());
  }

  async::Future<rpc::Message<v1::SetOptimizerOptionReply>> SetOption(
      const rpc::MethodCall& call,
      const v1::SetOptimizerOptionRequest& request) {
    using M = v1::SetOptimizerOptionReply;
    return Find(request.optimizer(), call.peer)
        .Then(
            [request](absl::StatusOr<std::shared_ptr<OwnerOptimizer>> optimizer)
                -> absl::StatusOr<rpc::Message<M>> {
              RETURN_IF_ERROR(optimizer);
              return Reply<M>((*optimizer)
                                  ->SetOption(request.group(), request.option(),
                                              request.value()));
            });
  }

  async::Future<rpc::Message<v1::GetOptimizerStateReply>> GetState(
      const rpc::MethodCall& call,
      const v1::GetOptimizerStateRequest& request) {
    using M = v1::GetOptimizerStateReply;
    return Find(request.optimizer(), call.peer)
        .Then([](absl::StatusOr<std::shared_ptr<OwnerOptimizer>> optimizer) {
          if (!optimizer.ok()) {
            return async::MakeReadyFuture<std::vector<GroupState>>(
                optimizer.status());
          }
          return (*optimizer)->GetState();
        })
        .Then([](absl::StatusOr<std::vector<GroupState>> state)
                  -> absl::StatusOr<rpc::Message<M>> {
          RETURN_IF_ERROR(state);
          rpc::Message<M> reply;
          WriteState(*state, *reply.body.mutable_rules(),
                     *reply.body.mutable_parameters(), reply.tensors);
          return reply;
        });
  }

  async::Future<rpc::Message<v1::SetOptimizerStateReply>> SetState(
      const rpc::MethodCall& call,
      rpc::Message<v1::SetOptimizerStateRequest> request) {
    using M = v1::SetOptimizerStateReply;
    OptimizerFuture found = Find(request.body.optimizer(), call.peer);
    return std::move(found)
        .Then([request = std::move(request)](
                  absl::StatusOr<std::shared_ptr<OwnerOptimizer>>
                      optimizer) mutable {
          if (!optimizer.ok()) {
            return async::MakeReadyFuture<void>(optimizer.status());
          }
          absl::StatusOr<std::vector<GroupState>> state = ReadState(
              request.body.rules(), request.body.parameters(),
              std::move(request.tensors), (*optimizer)->group_sizes());
          if (!state.ok()) return async::MakeReadyFuture<void>(state.status());
          return (*optimizer)->SetState(*std::move(state));
        })
        .Then([](const absl::Status& status) { return Reply<M>(status); });
  }

  rpc::HostHandle host_;
  const std::shared_ptr<rref::Protocol> references_;
  const std::shared_ptr<dist_autograd::Engine> autograd_;
};

DistOptimService::DistOptimService() = default;
DistOptimService::~DistOptimService() = default;

absl::Status DistOptimService::Start(rpc::ServiceHost& host) {
  ASSIGN_OR_RETURN(std::shared_ptr<rref::Protocol> references,
                   rref::ProtocolOf(host));
  ASSIGN_OR_RETURN(std::shared_ptr<dist_autograd::Engine> autograd,
                   dist_autograd::EngineOf(host));
  methods_ = std::make_shared<Methods>(host, std::move(references),
                                       std::move(autograd));
  return methods_->Register(host);
}

void DistOptimService::Stop() {
  if (methods_ != nullptr) methods_->Stop();
}

}  // namespace hawser::dist_optim
