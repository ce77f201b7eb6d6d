// Observation of the stages of a push on a server.

#ifndef HAWSER_PS_STORAGE_PUSH_OBSERVER_H_
#define HAWSER_PS_STORAGE_PUSH_OBSERVER_H_

#include <functional>

namespace hawser::ps {

// Stages of a push of rows, in order. One that fails does not pass the rest. Of
// a table without a log, only kReceived and kReplying are observed.
enum class PushStage {
  kReceived,  // Nothing of its tensors was read.
  kDecoded,   // It was read and checked.
  kLogged,    // It is in the log.
  kApplied,   // Its rows are updated.
  kReplying,  // The reply is sent next.
};

// Is called at each stage, on the thread that handles the push, which waits
// for it. Tests stop or end processes in it. May be empty.
using PushObserver = std::function<void(PushStage)>;

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_PUSH_OBSERVER_H_
