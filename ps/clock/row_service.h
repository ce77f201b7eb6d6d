// The methods of proto/ps.proto that read and update rows.

#ifndef HAWSER_PS_CLOCK_ROW_SERVICE_H_
#define HAWSER_PS_CLOCK_ROW_SERVICE_H_

#include <memory>

#include "absl/status/status.h"
#include "ps/clock/clock_server.h"
#include "ps/server/table_server.h"
#include "rpc/agent/service_host.h"

namespace hawser::ps {

// Registers the handlers of ps/row_requests.h. Requests with the clock of a
// worker pass the gate of their table first; updates of a synchronous table are
// applied by its gate. Errors of ServiceHost::RegisterMethod.
absl::Status RegisterRowMethods(rpc::ServiceHost& host,
                                const std::shared_ptr<TableServer>& tables,
                                const std::shared_ptr<ClockServer>& clocks);

}  // namespace hawser::ps

#endif  // HAWSER_PS_CLOCK_ROW_SERVICE_H_
