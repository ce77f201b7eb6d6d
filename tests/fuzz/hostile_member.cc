#include "tests/fuzz/hostile_member.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/clock.h"
#include "bazel/fuzz/made_up_tensors.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/dist_autograd.pb.h"
#include "proto/dist_optim.pb.h"
#include "proto/rpc.pb.h"
#include "proto/rref.pb.h"
#include "proto/stream.pb.h"
#include "rpc/agent/agent_options.h"
#include "rpc/identity/worker_run.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/wire/message_codec.h"
#include "rref/ids.h"
#include "rref/wire_ids.h"

namespace hawser::tests {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

// Ids of contexts and forward messages have their creator's rank in the top 16
// bits.
constexpr uint64_t IdOf(uint64_t rank, uint64_t number) {
  return rank << 48 | number;
}
constexpr uint64_t kMySlots = 3;

struct MethodTypes {
  std::string path;
  const Message* request = nullptr;
  const Message* reply = nullptr;
};

// All methods that every agent of the job serves.
const std::vector<MethodTypes>& Methods() {
  static const std::vector<MethodTypes>& methods = *[] {
    auto* all = new std::vector<MethodTypes>();
    for (const Message* first : std::vector<const Message*>{
             &v1::CallRequest::default_instance(),
             &v1::RRefCreateRequest::default_instance(),
             &v1::GradientRequest::default_instance(),
             &v1::CreateOptimizerRequest::default_instance(),
             &v1::StreamOpenRequest::default_instance()}) {
      const auto& file = *first->GetDescriptor()->file();
      auto& factory = *google::protobuf::MessageFactory::generated_factory();
      const auto& service = *file.service(0);
      for (int i = 0; i < service.method_count(); ++i) {
        const auto& method = *service.method(i);
        all->push_back({"/" + service.full_name() + "/" + method.name(),
                        factory.GetPrototype(method.input_type()),
                        factory.GetPrototype(method.output_type())});
      }
    }
    return all;
  }();
  return methods;
}

}  // namespace

size_t HostileMember::num_methods() { return Methods().size(); }

HostileMember::HostileMember(Options options)
    : input_(*options.input),
      maker_(options.input),
      functions_(*options.functions),
      transport_(options.network->NewTransport()) {
  std::vector<rpc::TransportMethod> methods;
  for (const MethodTypes& method : Methods()) {
    methods.push_back(
        {.path = method.path,
         .handler = [this, &method](std::unique_ptr<rpc::IncomingCall> call) {
           Handle(*method.reply, std::move(call));
         }});
  }
  info_ = {.name = "w1",
           .id = rpc::WorkerId(1),
           .incarnation = rpc::Incarnation{1001},
           .address = *transport_->Listen("", std::move(methods))};
  const std::string job = rpc::AgentOptions().job;
  rpc::WorkerDirectory directory(options.store, job);
  rpc::MembershipLog log(options.store, job);
  HAWSER_CHECK(directory.JoinGroup(std::nullopt).ok());
  HAWSER_CHECK(
      log.Renew(info_.incarnation, 1, /*lifetime=*/absl::Hours(1)).ok());
  HAWSER_CHECK(directory.Register(info_, {}).ok());
  HAWSER_CHECK(log.Append(rpc::JoinedEvent(info_)).ok());
}

HostileMember::~HostileMember() {
  held_.clear();
  connection_.reset();
  transport_->Shutdown();
}

void HostileMember::SetVictim(const rpc::WorkerInfo& victim) {
  victim_ = victim;
  connection_ = *transport_->Connect({.address = victim.address});
  maker_.Offer(rref::ToProto(rpc::RunOf(info_)));
  maker_.Offer(rref::ToProto(rpc::RunOf(victim)));
  for (uint64_t number : {1, 2, 3}) {
    const rref::GlobalId id{rpc::RunOf(info_), number};
    maker_.Offer(rref::ToProto(id));
  }
  maker_.OfferNumbers(
      "hawser.v1.BackwardPassId.context_incarnation",
      {rpc::ToNumber(info_.incarnation), rpc::ToNumber(victim.incarnation)});
  maker_.OfferStrings("hawser.v1.OptimizerRule.name", {"SGD", "Adam"});
  maker_.OfferStrings("hawser.v1.SetOptimizerOptionRequest.option",
                      {"lr", "momentum"});
  maker_.OfferStrings("hawser.v1.MessageValue.type",
                      {"hawser.v1.RRefReference"});
  for (uint64_t slot = 0; slot < contexts_.size(); ++slot) {
    const uint64_t rank = slot < kMySlots ? 1 : 0;
    contexts_[slot] = IdOf(rank, slot + 1);
    message_ids_[slot] = IdOf(rank, slot + 1);
  }
  OfferContexts();
  OfferMessageIds();
}

void HostileMember::LearnContext(uint64_t context) {
  contexts_[kMySlots + next_context_++ % kMySlots] = context;
  OfferContexts();
}

void HostileMember::OfferContexts() {
  const std::vector<uint64_t> ids(contexts_.begin(), contexts_.end());
  for (const char* field : {"hawser.v1.BackwardPassId.context",
                            "hawser.v1.ReleaseContextRequest.contexts",
                            "hawser.v1.ReparentContextsRequest.contexts",
                            "hawser.v1.ReparentContextsReply.ended",
                            "hawser.v1.BackwardReferenceRequest.context",
                            "hawser.v1.OptimizerStepRequest.context"}) {
    maker_.OfferNumbers(field, ids);
  }
}

void HostileMember::OfferMessageIds() {
  const std::vector<uint64_t> ids(message_ids_.begin(), message_ids_.end());
  for (const char* field : {"hawser.v1.MessageGradients.message",
                            "hawser.v1.GradientRequest.skipped",
                            "hawser.v1.MessageManifest.expected",
                            "hawser.v1.MessageManifest.known"}) {
    maker_.OfferNumbers(field, ids);
  }
}

rpc::Payload HostileMember::Encode(std::string body, std::string header) {
  rpc::OutgoingMessage message{.body = std::move(body),
                               .header = std::move(header),
                               .tensors = fuzz::MakeTensors(input_)};
  const uint8_t flags = input_.Byte();
  for (size_t i = 0; i < message.tensors.size(); ++i) {
    message.requires_grad.push_back((flags >> i & 1) != 0);
  }
  return *rpc::EncodeMessage(std::move(message), counters_);
}

std::optional<rpc::AutogradMetadata> HostileMember::MakeMetadata() {
  if (input_.Below(3) == 0) return std::nullopt;
  return rpc::AutogradMetadata{
      .context_id = contexts_[input_.Below(contexts_.size())],
      .context_incarnation =
          input_.Bool() ? victim_.incarnation : info_.incarnation,
      .message_id = message_ids_[input_.Below(message_ids_.size())]};
}

std::string HostileMember::MakeArguments(std::string_view signature) {
  v1::ValueList arguments;
  if (input_.Below(8) == 7) {
    maker_.Fill(arguments);
    return arguments.SerializeAsString();
  }
  const size_t open = signature.find('(');
  std::string_view rest = signature.substr(open + 1);
  rest = rest.substr(0, rest.find(')'));
  while (!rest.empty()) {
    const std::string_view type = rest.substr(0, rest.find(", "));
    rest.remove_prefix(std::min(rest.size(), type.size() + 2));
    v1::Value& value = *arguments.add_values();
    if (type == "Tensor") {
      value.set_tensor_index(static_cast<uint32_t>(input_.Below(4)));
    } else if (type.starts_with("RRef<")) {
      v1::MessageValue& reference = *value.mutable_message_value();
      reference.set_type("hawser.v1.RRefReference");
      reference.set_data(maker_.Make<v1::RRefReference>().SerializeAsString());
    } else {
      value.set_int_value(static_cast<int64_t>(input_.Number()));
    }
  }
  return arguments.SerializeAsString();
}

// The requests that name a function have the same names for these fields.
void HostileMember::FillFunction(Message& request) {
  const auto& descriptor = *request.GetDescriptor();
  const FieldDescriptor* const function =
      descriptor.FindFieldByName("function");
  const FieldDescriptor* const arguments =
      descriptor.FindFieldByName("arguments");
  if (function == nullptr || arguments == nullptr) return;
  const std::vector<const rpc::RegisteredFunction*> all = functions_.All();
  const size_t choice = input_.Below(all.size() + 1);
  if (choice == all.size()) return;
  const auto& reflection = *request.GetReflection();
  reflection.SetString(&request, function, std::string(all[choice]->name()));
  const std::string signature(all[choice]->signature());
  reflection.SetString(&request, descriptor.FindFieldByName("signature"),
                       signature);
  const std::string values = MakeArguments(signature);
  if (arguments->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    reflection.SetString(&request, arguments, values);
  } else {
    HAWSER_CHECK(reflection.MutableMessage(&request, arguments)
                     ->ParseFromString(values));
  }
}

void HostileMember::CallMethod() {
  const MethodTypes& method = Methods()[input_.Below(Methods().size())];
  const std::unique_ptr<Message> request(method.request->New());
  maker_.Fill(*request);
  FillFunction(*request);
  // Sometimes the number of an earlier call.
  const uint64_t call_id =
      input_.Below(8) == 7 ? input_.Below(8) : ++last_call_;
  const std::string job = rpc::AgentOptions().job;
  std::string header =
      rpc::EncodeRequestHeader({.job = job,
                                .source = info_.name,
                                .source_rank = info_.id,
                                .source_incarnation = info_.incarnation,
                                .destination = victim_.name,
                                .destination_incarnation = victim_.incarnation,
                                .call_id = call_id,
                                .autograd = MakeMetadata()});
  calls_.push_back(connection_->Call(
      method.path, Encode(request->SerializeAsString(), std::move(header)),
      async::kNever, [](const absl::StatusOr<rpc::Payload>&) {}));
}

void HostileMember::CancelCall() {
  if (calls_.empty()) return;
  connection_->Cancel(calls_[input_.Below(256) % calls_.size()]);
}

void HostileMember::LearnFrom(rpc::IncomingCall& call) {
  const auto message = rpc::IncomingMessage::Parse(call.TakeRequest());
  HAWSER_CHECK(message.ok()) << message.status();
  const auto header = message->ParseRequestHeader();
  HAWSER_CHECK(header.ok()) << header.status();
  if (!header->autograd.has_value()) return;
  message_ids_[kMySlots + next_message_id_++ % kMySlots] =
      header->autograd->message_id;
  OfferMessageIds();
}

void HostileMember::Handle(const Message& reply_type,
                           std::unique_ptr<rpc::IncomingCall> call) {
  LearnFrom(*call);
  switch (input_.Below(4)) {
    case 0:
      held_.push_back({&reply_type, std::move(call)});
      break;
    case 1:
      call->Reply(absl::Status(
          static_cast<absl::StatusCode>(1 + input_.Below(16)), "made up"));
      break;
    default:
      Reply(reply_type, *call);
      break;
  }
}

void HostileMember::Reply(const Message& reply_type, rpc::IncomingCall& call) {
  const std::unique_ptr<Message> reply(reply_type.New());
  maker_.Fill(*reply);
  std::string header = rpc::EncodeReplyHeader(MakeMetadata());
  call.Reply(Encode(reply->SerializeAsString(), std::move(header)));
}

void HostileMember::ReplyLater() {
  if (held_.empty()) return;
  HeldCall held = std::move(held_.front());
  held_.pop_front();
  Reply(*held.reply_type, *held.call);
}

}  // namespace hawser::tests
