#ifndef HAWSER_EXAMPLES_MNIST_PS_FUNCTIONS_H_
#define HAWSER_EXAMPLES_MNIST_PS_FUNCTIONS_H_

#include <cstdint>
#include <string>

#include "rpc/functions/function.h"
#include "rref/rref.h"
#include "tensor/tensor.h"

// Remote functions of the job.
namespace hawser::examples::mnist_ps {

// On a server: creates a parameter with a name and an initial value.
inline constexpr rpc::Function<rref::RRef<Tensor>(std::string, Tensor)>
    kCreateParameter{"mnist_ps.CreateParameter"};

// On a server: waits until the named parameter exists, and returns it.
inline constexpr rpc::Function<rref::RRef<Tensor>(std::string)> kFindParameter{
    "mnist_ps.FindParameter"};

// On trainer 0: reports how many samples a trainer has processed so far.
// Arguments: the trainer's index and its number of samples.
inline constexpr rpc::Function<void(int64_t, int64_t)> kReportSamples{
    "mnist_ps.ReportSamples"};

// On trainer 0: reports that a trainer has finished. The same arguments.
inline constexpr rpc::Function<void(int64_t, int64_t)> kTrainerDone{
    "mnist_ps.TrainerDone"};

// On all workers: ends the job. The argument is empty if the training has
// finished, otherwise the reason why it cannot continue.
inline constexpr rpc::Function<void(std::string)> kEndJob{"mnist_ps.EndJob"};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_FUNCTIONS_H_
