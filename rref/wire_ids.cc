#include "rref/wire_ids.h"

namespace hawser::rref {

rpc::WorkerRun FromProto(const v1::WorkerRun& run) {
  return {rpc::WorkerId(run.worker()), rpc::Incarnation{run.incarnation()}};
}

v1::WorkerRun ToProto(const rpc::WorkerRun& run) {
  v1::WorkerRun proto;
  proto.set_worker(run.id.value());
  proto.set_incarnation(rpc::ToNumber(run.incarnation));
  return proto;
}

GlobalId FromProto(const v1::GlobalId& id) {
  return {FromProto(id.creator()), id.number()};
}

v1::GlobalId ToProto(const GlobalId& id) {
  v1::GlobalId proto;
  *proto.mutable_creator() = ToProto(id.creator);
  proto.set_number(id.number);
  return proto;
}

}  // namespace hawser::rref
