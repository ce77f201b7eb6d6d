// Conversions between ids and their messages.

#ifndef HAWSER_RREF_WIRE_IDS_H_
#define HAWSER_RREF_WIRE_IDS_H_

#include "proto/rref.pb.h"
#include "rpc/identity/worker_run.h"
#include "rref/ids.h"

namespace hawser::rref {

rpc::WorkerRun FromProto(const v1::WorkerRun& run);
v1::WorkerRun ToProto(const rpc::WorkerRun& run);

GlobalId FromProto(const v1::GlobalId& id);
v1::GlobalId ToProto(const GlobalId& id);

}  // namespace hawser::rref

#endif  // HAWSER_RREF_WIRE_IDS_H_
