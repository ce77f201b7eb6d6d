// The distributed autograd context of a task.

#ifndef HAWSER_DIST_AUTOGRAD_CURRENT_CONTEXT_H_
#define HAWSER_DIST_AUTOGRAD_CURRENT_CONTEXT_H_

#include <memory>

#include "async/task_local.h"
#include "dist_autograd/context.h"

namespace hawser::dist_autograd {

// The context in which the calling task records. It may have ended. Shared by
// all engines of the process; each uses only its own contexts.
inline constinit const async::TaskLocal<std::shared_ptr<Context>>
    kCurrentContext;

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_CURRENT_CONTEXT_H_
